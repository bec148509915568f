// How much training a model needs to reach a target quality: measured epochs over the global batch, the law
// through them, and what a run does besides training. One YAML file for each target in graphs/convergence/.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graphs/convergence_law.h"
#include "hwspecs/base/quantity.h"
#include "hwspecs/base/sources.h"

namespace tbdsim {

// When a run looks whether it has reached the target.
struct EvaluationSchedule {
  double first = 0;       // epochs before the first evaluation
  double every = 0;       // epochs between two evaluations
  double samples = 0;     // of one evaluation
  Seconds overhead;       // of one evaluation beside the forward passes: switching over, scoring
  Seconds per_sample;     // of a sample on its GPU beside the forward pass: detections are chosen and scored
  bool overlaps = false;  // evaluated by others, or beside the training
  // A run ends at an evaluation, and runs differ by less than `every`: epochs are whole multiples of it.
  bool exact = false;

  // Evaluations of a run of so many epochs: at least one, at its end.
  [[nodiscard]] double within(double epochs) const;
};

// A part of a run in which images or sequences have other sizes than the network's own, as where images grow
// while it trains.
struct TrainingPhase {
  double share = 1;                           // of the epochs of the run; those of all phases add up to 1
  double batch = 1;                           // samples of an iteration over those of the run's global batch
  std::map<std::string, std::int64_t> sizes;  // image_size -> 128
};

// The quality that a run has after a part of its way to the target.
struct CurvePoint {
  double at = 0;       // share of the epochs to the target; hours in a measured run
  double quality = 0;  // in the unit of the target
};

// A run that was measured, to be laid beside predictions of the same GPUs.
struct MeasuredCurve {
  std::string title;
  std::string gpu;  // name in the catalogue
  std::int64_t gpus = 1;
  std::vector<CurvePoint> points;  // at: hours, ascending
};

inline constexpr std::string_view kUsualTarget = "usual";  // the target that a model is usually trained to

struct Convergence {
  std::string name;   // the file's stem
  std::string title;  // "ResNet-50 on ImageNet to 75.9 % top-1"
  std::string model;
  std::string target;                    // "0.759 top-1"
  std::vector<std::string> also_called;  // other names of the target
  bool usual = false;                    // the one that is meant where no target is named
  std::string optimizer;
  double epoch = 0;  // samples
  Seconds startup;   // before the first training step: processes, data, compilers
  EvaluationSchedule evaluation;
  // Ascending batches; empty where no run to this target is known, and then there is no law either.
  std::vector<ConvergencePoint> points;
  ConvergenceLaw law;
  double given_epochs = 0;  // that a user says a run takes at its batch; 0: those of points and law
  double law_spread = 0;    // standard deviation of ln(epochs / law) at batches that were left out
  // Standard deviation of ln(mean epochs) between groups that tune runs of their own at one batch, beyond the
  // luck of their runs.
  double between_spread = 0;
  std::vector<TrainingPhase> phases;  // at least one
  std::vector<CurvePoint> curve;      // quality on the way to the target, ascending; empty: not known
  std::vector<MeasuredCurve> measured;
  Sources sources;

  [[nodiscard]] bool is_measured() const { return !points.empty(); }
  [[nodiscard]] bool knows_epochs() const { return is_measured() || given_epochs > 0; }
  // The largest batch whose epochs are known: of all that were measured, or any where epochs are given.
  [[nodiscard]] double largest_batch() const { return given_epochs > 0 ? epoch : points.back().batch; }
  // True for the stem, the target or another name of it, in capitals or not, however spaced.
  [[nodiscard]] bool is_called(const std::string& name) const;
};

// Throws UsageError or SpecError.
[[nodiscard]] Convergence read_convergence(const std::filesystem::path& file);

// Where the epochs of a batch come from: the law between measured batches or outside of them, or the user.
enum class EpochsFrom { between, below, beyond, given };
[[nodiscard]] std::string_view name_of(EpochsFrom from);
[[nodiscard]] bool is_outside(EpochsFrom from);  // of the measured batches

struct EpochsToTarget {
  double epochs = 0;
  EpochsFrom from = EpochsFrom::between;
  double run_spread = 0;      // standard deviation of ln(epochs) between runs
  double law_spread = 0;      // of the law itself; wider outside of the measured batches
  double between_spread = 0;  // between groups that tune runs of their own

  // All together, for the mean of so many runs of one group.
  [[nodiscard]] double spread(int runs = 1) const;
};

// By which law_spread grows beyond the measured batches, for each factor of e. Root mean square of
// ln(law / measured) / ln(factor beyond the others) over the first and last batches of the catalogue's 19
// targets of three batches or more, each left out of the fit, as `tbd-calibrate fit-convergence` prints;
// RetinaNet's and Llama 2's are off most.
inline constexpr double kOutsideSpread = 0.21;

inline constexpr double kMostEpochs = 1e6;  // that a file or a user may say

// Epochs to the target at a global batch: those that are given, as they are and without a spread, or those of
// points and law, quantised by the evaluation schedule where that is exact. Throws UsageError where neither
// is known.
[[nodiscard]] EpochsToTarget epochs_to_target(const Convergence& convergence, double global_batch);
// The same by another law and points, as without those of a batch.
[[nodiscard]] EpochsToTarget epochs_to_target(const Convergence& convergence, const ConvergenceLaw& law,
                                              std::span<const ConvergencePoint> points, double global_batch);

}  // namespace tbdsim
