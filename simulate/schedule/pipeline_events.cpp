#include "simulate/schedule/pipeline_events.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <stdexcept>

namespace tbdsim {
namespace {

struct Pass {
  bool forward = true;
  std::int64_t chunk = 0;
  std::int64_t micro_batch = 0;
};

// Forward passes that stage `stage` runs before its first backward pass.
std::int64_t warm_up(PipelineOrder order, std::int64_t stage, std::int64_t stages, std::int64_t chunks,
                     std::int64_t micro_batches) {
  const std::int64_t all = micro_batches * chunks;
  if (order == PipelineOrder::gpipe) return all;
  const std::int64_t behind = stages - 1 - stage;
  if (chunks == 1) return std::min(behind, all);
  return micro_batches == stages ? all : std::min(2 * behind + (chunks - 1) * stages, all);
}

// The k-th forward or backward pass of a stage: groups of as many micro-batches as stages pass one chunk
// after another.
Pass kth_pass(bool forward, std::int64_t k, std::int64_t stages, std::int64_t chunks) {
  if (chunks == 1) return {forward, 0, k};
  const std::int64_t group = k / (stages * chunks);
  const std::int64_t within = k % (stages * chunks);
  const std::int64_t chunk = within / stages;
  return {forward, forward ? chunk : chunks - 1 - chunk, group * stages + within % stages};
}

std::vector<Pass> passes_of_stage(PipelineOrder order, std::int64_t stage, std::int64_t stages,
                                  std::int64_t chunks, std::int64_t micro_batches) {
  const std::int64_t all = micro_batches * chunks;
  const std::int64_t before = warm_up(order, stage, stages, chunks, micro_batches);
  std::vector<Pass> passes;
  for (std::int64_t k = 0; k < before; ++k) passes.push_back(kth_pass(true, k, stages, chunks));
  for (std::int64_t k = 0; k < all; ++k) {
    if (before + k < all) passes.push_back(kth_pass(true, before + k, stages, chunks));
    passes.push_back(kth_pass(false, k, stages, chunks));
  }
  return passes;
}

class Simulation {
 public:
  Simulation(PipelineOrder order, std::span<const std::vector<StageTime>> chunks, std::int64_t micro_batches,
             Seconds send)
      : chunks_(chunks), stages_(chunks[0].size()), micro_batches_(micro_batches), send_(send) {
    const auto stages = static_cast<std::int64_t>(stages_);
    const auto count = static_cast<std::int64_t>(chunks.size());
    for (std::int64_t i = 0; i < stages; ++i)
      passes_.push_back(passes_of_stage(order, i, stages, count, micro_batches));
    ends_.resize(2 * chunks.size() * stages_ * static_cast<std::size_t>(micro_batches), kNotYet);
    of_stage_.resize(stages_);
  }

  PipelineEvents run() {
    for (bool progress = true; progress;) {
      progress = false;
      for (std::size_t i = 0; i < stages_; ++i) progress = run_stage(i) || progress;
    }
    PipelineEvents all;
    for (std::size_t i = 0; i < stages_; ++i) {
      if (of_stage_[i].size() != passes_[i].size())
        throw std::logic_error("a pipeline schedule that waits for itself");
      all.events.insert(all.events.end(), of_stage_[i].begin(), of_stage_[i].end());
      all.step = std::max(all.step, of_stage_[i].back().end);
    }
    return all;
  }

 private:
  static constexpr double kNotYet = -1;

  // Index of the end of a pass of global chunk `chunk * stages + stage`.
  [[nodiscard]] std::size_t index(bool forward, std::size_t place, std::int64_t micro_batch) const {
    return (place * 2 + (forward ? 0 : 1)) * static_cast<std::size_t>(micro_batches_) +
           static_cast<std::size_t>(micro_batch);
  }

  // When the pass's input is there; kNotYet where that is not known yet. Layers are on places in order: all
  // stages of the first chunk, then all of the second.
  [[nodiscard]] double ready(const Pass& pass, std::size_t place) const {
    const std::size_t last = chunks_.size() * stages_ - 1;
    if (pass.forward && place == 0) return 0;
    if (!pass.forward && place == last) return ends_[index(true, place, pass.micro_batch)];
    const double end = ends_[index(pass.forward, pass.forward ? place - 1 : place + 1, pass.micro_batch)];
    return end == kNotYet ? kNotYet : end + send_.si();
  }

  // Runs what can be run; true if anything could.
  bool run_stage(std::size_t stage) {
    std::vector<PipelineEvent>& done = of_stage_[stage];
    const std::size_t before = done.size();
    while (done.size() < passes_[stage].size()) {
      const Pass& pass = passes_[stage][done.size()];
      const auto chunk = static_cast<std::size_t>(pass.chunk);
      const std::size_t place = chunk * stages_ + stage;
      const double input = ready(pass, place);
      if (input == kNotYet) break;
      const StageTime& time = chunks_[chunk][stage];
      const double start = std::max(input, done.empty() ? 0 : done.back().end.si());
      const double end = start + (pass.forward ? time.forward : time.backward).si();
      ends_[index(pass.forward, place, pass.micro_batch)] = end;
      done.push_back({.stage = static_cast<int>(stage),
                      .chunk = static_cast<int>(chunk),
                      .micro_batch = pass.micro_batch,
                      .forward = pass.forward,
                      .start = Seconds(start),
                      .end = Seconds(end)});
    }
    return done.size() > before;
  }

  std::span<const std::vector<StageTime>> chunks_;
  std::size_t stages_;
  std::int64_t micro_batches_;
  Seconds send_;
  std::vector<std::vector<Pass>> passes_;             // of each stage
  std::vector<std::vector<PipelineEvent>> of_stage_;  // done so far
  std::vector<double> ends_;                          // by index()
};

}  // namespace

PipelineEvents simulate_pipeline(PipelineOrder order, std::span<const std::vector<StageTime>> chunks,
                                 std::int64_t micro_batches, Seconds send) {
  if (chunks.empty() || chunks[0].empty() || micro_batches < 1)
    throw std::invalid_argument("a pipeline without stages or micro-batches");
  if (order == PipelineOrder::zero_bubble)
    throw std::invalid_argument("the order of zero_bubble depends on the times");
  if (chunks.size() > 1) {
    if (order == PipelineOrder::gpipe) throw std::invalid_argument("gpipe has one chunk a stage");
    if (micro_batches % static_cast<std::int64_t>(chunks[0].size()) != 0)
      throw std::invalid_argument("micro-batches of an interleaved schedule are a multiple of the stages");
  }
  return Simulation(order, chunks, micro_batches, send).run();
}

}  // namespace tbdsim
