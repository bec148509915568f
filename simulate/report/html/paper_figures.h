// The sections of `tbd-sim report` with the figures of the TBD paper. A section without views has nothing to
// show.
#pragma once

#include "simulate/report/html/page.h"
#include "simulate/report/html/report_data.h"

namespace tbdsim {

[[nodiscard]] Section overview_section(const ReportData& data);    // a row for each model and framework
[[nodiscard]] Section throughput_section(const ReportData& data);  // Figure 4
[[nodiscard]] Section gpu_section(const ReportData& data);         // Figure 5
[[nodiscard]] Section fp32_section(const ReportData& data);        // Figure 6
[[nodiscard]] Section comparison_section(const ReportData& data);  // Figure 7
[[nodiscard]] Section memory_section(const ReportData& data);      // Figure 8

}  // namespace tbdsim
