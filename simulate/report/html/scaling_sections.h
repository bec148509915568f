// The sections of `tbd-sim report` on more or other hardware. A section without views has nothing to
// show.
#pragma once

#include "simulate/report/html/page.h"
#include "simulate/report/html/report_data.h"

namespace tbdsim {

[[nodiscard]] Section scaling_section(const ReportData& data);  // Figure 9
[[nodiscard]] Section whatif_section(const ReportData& data);   // upper bounds and sensitivities

}  // namespace tbdsim
