#include "simulate/prediction/time_to_target.h"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "hwspecs/base/quantity_text.h"
#include "simulate/prediction/uncertainty.h"

namespace tbdsim {
namespace {

// Estimate: an hour's work is what a failure may cost; 1 GB/s is the most that one volume of Amazon EBS gp3
// takes.
constexpr Seconds kBetweenCheckpoints(3600);
constexpr BytesPerSecond kCheckpointRate(kGiga);

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
  const double each = std::ceil(schedule.samples / static_cast<double>(p.ranks()));  // samples of one GPU
  return schedule.overhead + alone * (forward_share(p) * iterations) + schedule.per_sample * each;
}

Seconds checkpoint_time(const Prediction& p) {
  const Bytes state = p.memory.use[MemoryCategory::weights] + p.memory.use[MemoryCategory::dynamic];
  return state / kCheckpointRate;
}

double factor_of(double spread) { return std::exp(kEightyPercent * spread); }

}  // namespace

double TimeToTarget::hardware_factor() const { return factor_of(hardware_spread); }
double TimeToTarget::epochs_factor() const { return factor_of(epochs.spread()); }
double TimeToTarget::factor(int runs) const {
  return factor_of(std::hypot(hardware_spread, epochs.spread(runs)));
}

double global_batch(const Prediction& p) {
  return p.batch() * static_cast<double>(p.batches_read() * p.ranks());
}

TimeToTarget time_of_epochs(std::span<const Prediction> phases, double batch, const EpochsToTarget& epochs,
                            const TimedParts& timed) {
  const Prediction& last = phases.back();
  assert(last.convergence != nullptr && phases.size() == last.convergence->phases.size());
  const Convergence& to = *last.convergence;
  TimeToTarget time;
  time.global_batch = batch;
  time.epochs = epochs;
  time.samples = epochs.epochs * to.epoch;
  double squares = 0;  // of each phase's spread, weighted by its time
  for (std::size_t i = 0; i < phases.size(); ++i) {
    const Prediction& p = phases[i];
    const Seconds training =
        p.iteration_time() * std::ceil(time.samples * to.phases[i].share / global_batch(p));
    time.phases.push_back(training);
    time.training += training;
    time.energy = time.energy + training_power(p) * training;
    squares += training.si() * std::pow(total_deviation(deviations_of(p)), 2);
  }
  time.hardware_spread = std::sqrt(squares / time.training.si());
  time.evaluations = to.evaluation.within(epochs.epochs);
  time.evaluation = evaluation_time(last, to.evaluation) * time.evaluations;
  if (timed.startup) time.startup = to.startup;
  if (timed.checkpoints) {
    time.checkpoints = 1 + std::floor((time.training + time.evaluation) / kBetweenCheckpoints);
    time.checkpointing = checkpoint_time(last) * time.checkpoints;
  }
  if (const auto rent = last.rent()) time.cost = *rent * time.total();
  time.energy = time.energy + training_power(last) * time.evaluation +
                waiting_power(last) * (time.startup + time.checkpointing);
  return time;
}

TimeToTarget time_of_epochs(const Prediction& p, const EpochsToTarget& epochs, const TimedParts& timed) {
  return time_of_epochs(std::span(&p, 1), global_batch(p), epochs, timed);
}

double hours_at(const TimeToTarget& time, const Convergence& to, double share) {
  Seconds trained;
  double before = 0;  // share of the epochs of the phases before
  for (std::size_t i = 0; i < time.phases.size(); ++i) {
    const double part = std::clamp((share - before) / to.phases[i].share, 0.0, 1.0);
    trained += time.phases[i] * part;
    before += to.phases[i].share;
  }
  return in_unit(time.startup + trained + time.evaluation * share, "h");
}

std::optional<TimeToTarget> time_to_target(const Prediction& p, const TimedParts& timed) {
  if (p.convergence == nullptr || !p.convergence->knows_epochs()) return std::nullopt;
  if (global_batch(p) > p.convergence->epoch) return std::nullopt;
  if (p.convergence->phases.size() > 1) return std::nullopt;
  return time_of_epochs(p, epochs_to_target(*p.convergence, global_batch(p)), timed);
}

}  // namespace tbdsim
