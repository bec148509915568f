// Time, rent and energy of a training run that ends at a target quality.
//
//   time = start-up + epochs * samples of an epoch / rate + evaluations * time of one + checkpoints * time of one
//
// `rate` is that of the prediction, over all GPUs; the epochs are those of the global batch
// (graphs/convergence.h). Where images grow while a network trains, each phase has its share of the epochs
// and a rate of its own.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "graphs/convergence.h"
#include "simulate/prediction/energy.h"
#include "simulate/prediction/prediction.h"

namespace tbdsim {

// The parts that belong to the time of a run.
struct TimedParts {
  bool startup = true;
  bool checkpoints = true;
};

struct TimeToTarget {
  double global_batch = 0;  // samples
  EpochsToTarget epochs;
  double samples = 0;      // that are trained on
  double evaluations = 0;  // whole
  double checkpoints = 0;  // whole
  Seconds startup;
  Seconds training;
  std::vector<Seconds> phases;  // parts of `training`, one for each phase of the target
  Seconds evaluation;           // of all, as far as training waits for them
  Seconds checkpointing;        // of all
  double hardware_spread = 0;   // standard deviation of ln(time) from the prediction of the rate
  std::optional<Dollars> cost;  // none where the GPU's file has no rent
  Energy energy;

  [[nodiscard]] Seconds total() const { return startup + training + evaluation + checkpointing; }
  // 80 % of runs are expected within the total divided and multiplied by these factors: for the rate of the
  // hardware alone, for the epochs alone (luck of a run, who tuned it, and the law), for both; the last of
  // the mean of so many runs.
  [[nodiscard]] double hardware_factor() const;
  [[nodiscard]] double epochs_factor() const;
  [[nodiscard]] double factor(int runs = 1) const;
};

// Samples of all GPUs in one iteration.
[[nodiscard]] double global_batch(const Prediction& prediction);

// None without a target or its epochs, where the global batch is more than the samples of an epoch, and for a
// target of several phases, which one prediction does not have the rates of.
[[nodiscard]] std::optional<TimeToTarget> time_to_target(const Prediction& prediction,
                                                         const TimedParts& timed = {});
// The time after so many epochs. `phases`: a prediction for each phase of the target, with its sizes and its
// share of the batch; `global_batch`: samples that the epochs are those of.
[[nodiscard]] TimeToTarget time_of_epochs(std::span<const Prediction> phases, double global_batch,
                                          const EpochsToTarget& epochs, const TimedParts& timed = {});
[[nodiscard]] TimeToTarget time_of_epochs(const Prediction& prediction, const EpochsToTarget& epochs,
                                          const TimedParts& timed = {});
// Hours from the start of a run until it has trained this share, 0 to 1, of its epochs.
[[nodiscard]] double hours_at(const TimeToTarget& time, const Convergence& to, double share);

}  // namespace tbdsim
