// The sections of `tbd-sim report`, pure functions of the predictions. A section without views has nothing to
// show.
#pragma once

#include "simulate/report/html/page.h"
#include "simulate/report/html/report_page.h"
#include "simulate/workload/spec_cache.h"

namespace tbdsim {

[[nodiscard]] Section overview_section(const ReportData& data);    // a row for each model and framework
[[nodiscard]] Section throughput_section(const ReportData& data);  // Figure 4
[[nodiscard]] Section gpu_section(const ReportData& data);         // Figure 5
[[nodiscard]] Section fp32_section(const ReportData& data);        // Figure 6
[[nodiscard]] Section comparison_section(const ReportData& data);  // Figure 7
[[nodiscard]] Section memory_section(const ReportData& data);      // Figure 8
[[nodiscard]] Section scaling_section(const ReportData& data);     // Figure 9
[[nodiscard]] Section whatif_section(const ReportData& data);      // upper bounds and sensitivities
[[nodiscard]] Section time_section(const ReportData& data);        // by layer type, limit and provenance
[[nodiscard]] Section kernels_section(const ReportData& data);     // roofline, timeline, longest kernels
[[nodiscard]] Section sources_section(const ReportData& data,
                                      SpecCache& specs);  // numbers with their sources

// Roofline, timeline and longest kernels of one iteration.
[[nodiscard]] View kernels_view(const Prediction& prediction);

// "resnet50, mxnet".
[[nodiscard]] std::string title_of(const Prediction& prediction);

// Palette index of the prediction's framework, one on all charts of a page.
[[nodiscard]] int colour_of(const ReportData& data, const Prediction& prediction);

// The predictions of one model: [first, last) of ReportData::predictions.
struct ModelRange {
  std::size_t first, last;
};
[[nodiscard]] std::vector<ModelRange> models_of(const ReportData& data);

}  // namespace tbdsim
