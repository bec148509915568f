#include "simulate/report/export/pipeline_trace.h"

#include <ostream>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "hwspecs/base/error.h"
#include "hwspecs/base/quantity_text.h"
#include "simulate/schedule/pipeline_events.h"

namespace tbdsim {
namespace {

using Json = nlohmann::ordered_json;

Json slice(int stage, const std::string& name, const char* category, Seconds start, Seconds time) {
  return {{"ph", "X"},
          {"cat", category},
          {"name", name},
          {"pid", 0},
          {"tid", stage},
          {"ts", in_unit(start, "us")},
          {"dur", in_unit(time, "us")}};
}

}  // namespace

void write_pipeline_trace(std::ostream& out, const LayoutPrediction& p, const Job& job) {
  constexpr double kMostPasses = 1e6;
  const ParallelLayout& l = p.layout;
  const std::int64_t passes = micro_batches(l, job);
  if (l.order == PipelineOrder::zero_bubble)
    throw UsageError("a trace of zero_bubble: its order depends on the times; expected 1f1b or gpipe");
  if (2.0 * static_cast<double>(passes) * static_cast<double>(l.pp * l.vp) > kMostPasses)
    throw UsageError(
        fmt::format("a trace of {} micro-batches through {} stages of {} chunks; expected up to {:.0f} "
                    "passes",
                    passes, l.pp, l.vp, kMostPasses));
  const double part = 1 / static_cast<double>(l.vp);
  std::vector<StageTime> chunk;
  for (const StageTime& stage : p.stages)
    chunk.push_back({stage.forward * part, stage.backward * part, stage.weights * part});
  const std::vector<std::vector<StageTime>> chunks(static_cast<std::size_t>(l.vp), chunk);
  const PipelineEvents events = simulate_pipeline(l.order, chunks, passes);

  Json all = Json::array();
  all.push_back({{"ph", "M"}, {"name", "process_name"}, {"pid", 0}, {"args", {{"name", to_text(l)}}}});
  for (std::int64_t i = 0; i < l.pp; ++i)
    all.push_back({{"ph", "M"},
                   {"name", "thread_name"},
                   {"pid", 0},
                   {"tid", i},
                   {"args", {{"name", fmt::format("stage {}", i)}}}});
  for (const PipelineEvent& e : events.events) {
    const std::string name = fmt::format("{} {}{}", e.forward ? "forward" : "backward", e.micro_batch,
                                         l.vp > 1 ? fmt::format(", chunk {}", e.chunk) : "");
    all.push_back(slice(e.stage, name, e.forward ? "forward" : "backward", e.start, e.end - e.start));
  }
  for (int i = 0; i < static_cast<int>(l.pp); ++i) {
    all.push_back(slice(i, "exchange between replicas", "exchange", events.step, p.parts.replicas));
    all.push_back(slice(i, "update", "update", events.step + p.parts.replicas, p.parts.update));
  }
  out << Json{{"traceEvents", std::move(all)}, {"displayTimeUnit", "ms"}}.dump() << '\n';
}

}  // namespace tbdsim
