#include "simulate/report/pipeline_slices.h"

#include <fmt/format.h>

#include "hwspecs/base/error.h"
#include "simulate/schedule/pipeline_events.h"

namespace tbdsim {

std::vector<PipelineSlice> pipeline_slices(const LayoutPrediction& p, std::int64_t micro_batches) {
  constexpr double kMostPasses = 1e6;
  const ParallelLayout& l = p.layout;
  if (l.order == PipelineOrder::zero_bubble)
    throw UsageError("a picture of zero_bubble: its order depends on the times; expected 1f1b or gpipe");
  if (2.0 * static_cast<double>(micro_batches) * static_cast<double>(l.pp * l.vp) > kMostPasses)
    throw UsageError(
        fmt::format("a picture of {} micro-batches through {} stages of {} chunks; expected up to {:.0f} "
                    "passes",
                    micro_batches, l.pp, l.vp, kMostPasses));
  const double part = 1 / static_cast<double>(l.vp);
  std::vector<StageTime> chunk;
  for (const StageTime& stage : p.stages)
    chunk.push_back({stage.forward * part, stage.backward * part, stage.weights * part});
  const std::vector<std::vector<StageTime>> chunks(static_cast<std::size_t>(l.vp), chunk);
  const PipelineEvents events = simulate_pipeline(l.order, chunks, micro_batches);

  std::vector<PipelineSlice> slices;
  slices.reserve(events.events.size() + 2 * p.stages.size());
  for (const PipelineEvent& e : events.events) {
    const SliceKind kind = e.forward ? SliceKind::forward : SliceKind::backward;
    const std::string of_chunk = l.vp > 1 ? fmt::format(", chunk {}", e.chunk) : "";
    slices.push_back(
        {e.stage, kind,
         fmt::format("{} {}{}", kSliceNames[static_cast<std::size_t>(kind)], e.micro_batch, of_chunk),
         e.start, e.end - e.start});
  }
  for (int i = 0; i < static_cast<int>(l.pp); ++i) {
    Seconds start = events.step;
    for (const auto& [kind, time] :
         {std::pair{SliceKind::exchange, p.parts.replicas}, std::pair{SliceKind::update, p.parts.update}}) {
      slices.push_back({i, kind, std::string(kSliceNames[static_cast<std::size_t>(kind)]), start, time});
      start += time;
    }
  }
  return slices;
}

}  // namespace tbdsim
