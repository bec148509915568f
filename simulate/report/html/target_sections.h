// The section of `tbd-sim report` on time, cost and energy to a target quality; without views where none was
// asked for.
#pragma once

#include "simulate/report/html/page.h"
#include "simulate/report/html/report_data.h"

namespace tbdsim {

[[nodiscard]] Section target_section(const ReportData& data);

}  // namespace tbdsim
