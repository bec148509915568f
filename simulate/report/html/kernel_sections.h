// The sections of `tbd-sim report` on the kernels of an iteration, and on where numbers come from. A section
// without views has nothing to show.
#pragma once

#include "hwspecs/base/catalog.h"
#include "simulate/report/html/page.h"
#include "simulate/report/html/report_data.h"

namespace tbdsim {

[[nodiscard]] Section time_section(const ReportData& data);     // by layer type, limit and provenance
[[nodiscard]] Section kernels_section(const ReportData& data);  // roofline, timeline, longest kernels

// The numbers of the GPU's and the frameworks' files with their sources.
[[nodiscard]] Section sources_section(const ReportData& data, const Catalog& catalog);

// Roofline, timeline and longest kernels of one iteration.
[[nodiscard]] View kernels_view(const Prediction& prediction);

}  // namespace tbdsim
