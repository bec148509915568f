#include "simulate/report/html/report_page.h"

#include <fmt/format.h>

#include "hwspecs/base/quantity_text.h"
#include "simulate/report/html/kernel_sections.h"
#include "simulate/report/html/paper_figures.h"
#include "simulate/report/html/pipe_section.h"
#include "simulate/report/html/scaling_sections.h"
#include "simulate/report/html/target_sections.h"
#include "simulate/report/kernel_sources.h"
#include "simulate/workload/parallel.h"

namespace tbdsim {
namespace {

std::vector<std::string> summary_of(const ReportData& data) {
  const Prediction& first = data.predictions[0];
  const GpuSpec& gpu = *first.gpu;
  return {
      fmt::format("{}: {} SMs, {} in fp32, {} of {} at {}, {}", gpu.title, gpu.sm_count,
                  to_text(rate_of(gpu, MathType::fp32).peak), memory_text(gpu.usable_memory, gpu.memory_size),
                  gpu.memory_type, to_text(gpu.memory_bandwidth), to_text(gpu.tdp)),
      "kernel times: " + kernel_sources(data.predictions),
      "Everything here is predicted by tbd-sim " TBDSIM_VERSION
      ", nothing measured; intervals hold 80 % of what is expected to be measured."};
}

}  // namespace

Page report_page(const ReportData& data, const Catalog& catalog) {
  constexpr Section (*kSections[])(const ReportData&) = {
      overview_section, throughput_section, gpu_section,    fp32_section,   pipe_section, comparison_section,
      memory_section,   scaling_section,    target_section, whatif_section, time_section, kernels_section};
  const Prediction& first = data.predictions[0];
  Page page;
  page.title = fmt::format("Training on {}, {}", first.gpu->title, first.scenario.precision);
  page.summary = summary_of(data);
  for (const auto section : kSections) {
    Section made = section(data);
    if (!made.views.empty()) page.sections.push_back(std::move(made));
  }
  page.sections.push_back(sources_section(data, catalog));
  return page;
}

}  // namespace tbdsim
