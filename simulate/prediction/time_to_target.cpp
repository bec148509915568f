#include "simulate/prediction/time_to_target.h"

#include <algorithm>
#include <cassert>
#include <cmath>

#include <fmt/format.h>

#include "hwspecs/base/error.h"
#include "simulate/prediction/uncertainty.h"

namespace tbdsim {
namespace {

// Estimate: an hour's work is what a failure may cost; 1 GB/s is the most that one volume of Amazon EBS gp3
// takes.
constexpr Seconds kBetweenCheckpoints(3600);
constexpr BytesPerSecond kCheckpointRate(kGiga);
constexpr double kRoundingOfEpochs = 1e-6;  // 35 epochs of 5 are seven evaluations

// Share of the kernels' time that the forward pass takes.
double forward_share(const Prediction& p) {
  Seconds forward, all;
  for (const Iteration& iteration : p.iterations) {
    for (std::size_t k = 0; k < iteration.costs.size(); ++k) {
      const Kernel& kernel = iteration.step->kernels[k];
      const Seconds time = iteration.costs[k].total * (static_cast<double>(kernel.repeat) * iteration.share);
      all += time;
      if (kernel.phase == Phase::forward) forward += time;
    }
  }
  return all > Seconds(0) ? forward / all : 0;
}

// Time of one evaluation, all GPUs at work on it.
Seconds evaluation_time(const Prediction& p, const EvaluationSchedule& schedule) {
  if (schedule.overlaps) return {};
  const Seconds alone = mean_over(p.iterations, [](const Iteration& i) { return i.computing(); });
  const double iterations = std::ceil(schedule.samples / global_batch(p));
  return schedule.overhead + alone * (forward_share(p) * iterations);
}

Seconds checkpoint_time(const Prediction& p) {
  const Bytes state = p.memory.use[MemoryCategory::weights] + p.memory.use[MemoryCategory::dynamic];
  return state / kCheckpointRate;
}

double factor_of(double spread) { return std::exp(kEightyPercent * spread); }

}  // namespace

double TimeToTarget::hardware_factor() const { return factor_of(hardware_spread); }
double TimeToTarget::epochs_factor() const { return factor_of(epochs.spread()); }
double TimeToTarget::factor() const { return factor_of(std::hypot(hardware_spread, epochs.spread())); }

double global_batch(const Prediction& p) {
  return p.batch() * static_cast<double>(p.batches_read() * p.ranks());
}

TimeToTarget time_of_epochs(const Prediction& p, const EpochsToTarget& epochs, const TimedParts& timed) {
  assert(p.convergence != nullptr);
  const Convergence& to = *p.convergence;
  TimeToTarget time;
  time.global_batch = global_batch(p);
  time.epochs = epochs;
  time.samples = epochs.epochs * to.epoch;
  time.training = p.iteration_time() * std::ceil(time.samples / time.global_batch);
  time.evaluations = std::max(1.0, std::ceil(epochs.epochs / to.evaluation.every - kRoundingOfEpochs));
  time.evaluation = evaluation_time(p, to.evaluation) * time.evaluations;
  if (timed.startup) time.startup = to.startup;
  if (timed.checkpoints) {
    time.checkpoints = 1 + std::floor((time.training + time.evaluation) / kBetweenCheckpoints);
    time.checkpointing = checkpoint_time(p) * time.checkpoints;
  }
  time.hardware_spread = total_deviation(deviations_of(p));
  if (const auto rent = p.rent()) time.cost = *rent * time.total();
  time.energy = training_power(p) * (time.training + time.evaluation) +
                waiting_power(p) * (time.startup + time.checkpointing);
  return time;
}

std::optional<TimeToTarget> time_to_target(const Prediction& p, const TimedParts& timed) {
  if (p.convergence == nullptr || global_batch(p) > p.convergence->epoch) return std::nullopt;
  return time_of_epochs(p, epochs_to_target(*p.convergence, global_batch(p)), timed);
}

void require_batch_within_epoch(const Prediction& p) {
  if (p.convergence == nullptr || global_batch(p) <= p.convergence->epoch) return;
  throw UsageError(
      fmt::format("a batch of {:.0f} on all GPUs is more than the {:.0f} samples of an epoch; "
                  "expected fewer GPUs or a smaller --batch",
                  global_batch(p), p.convergence->epoch));
}

}  // namespace tbdsim
