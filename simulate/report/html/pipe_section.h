// The section of `tbd-sim report` with the use of each pipe of the multiprocessors, as the TBD suite's later
// page reports it.
#pragma once

#include "simulate/report/html/page.h"
#include "simulate/report/html/report_data.h"

namespace tbdsim {

[[nodiscard]] Section pipe_section(const ReportData& data);

}  // namespace tbdsim
