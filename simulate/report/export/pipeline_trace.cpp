#include "simulate/report/export/pipeline_trace.h"

#include <ostream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "hwspecs/base/quantity_text.h"
#include "simulate/report/pipeline_slices.h"

namespace tbdsim {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array<const char*, 4> kCategories = {"forward", "backward", "exchange", "update"};

Json slice_json(const PipelineSlice& slice) {
  return {{"ph", "X"},
          {"cat", kCategories[static_cast<std::size_t>(slice.kind)]},
          {"name", slice.name},
          {"pid", 0},
          {"tid", slice.stage},
          {"ts", in_unit(slice.start, "us")},
          {"dur", in_unit(slice.time, "us")}};
}

}  // namespace

void write_pipeline_trace(std::ostream& out, const LayoutPrediction& p, const Job& job) {
  const std::vector<PipelineSlice> slices = pipeline_slices(p, micro_batches(p.layout, job));
  Json all = Json::array();
  all.push_back({{"ph", "M"}, {"name", "process_name"}, {"pid", 0}, {"args", {{"name", to_text(p.layout)}}}});
  for (std::int64_t i = 0; i < p.layout.pp; ++i)
    all.push_back({{"ph", "M"},
                   {"name", "thread_name"},
                   {"pid", 0},
                   {"tid", i},
                   {"args", {{"name", fmt::format("stage {}", i)}}}});
  for (const PipelineSlice& slice : slices) all.push_back(slice_json(slice));
  out << Json{{"traceEvents", std::move(all)}, {"displayTimeUnit", "ms"}}.dump() << '\n';
}

}  // namespace tbdsim
