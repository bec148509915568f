// The steps that cross-validation and the fit of a profile share.
#pragma once

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "calibrate/fit/family_fit.h"
#include "calibrate/samples/sample.h"
#include "calibrate/samples/samples.h"
#include "costmodel/families/families.h"
#include "costmodel/residuals/residual_table.h"

namespace tbdsim {

template <class Family>
using Samples = std::vector<Sample<Family>>;

template <class Family, class Keep>
[[nodiscard]] Samples<Family> where(const Samples<Family>& samples, Keep keep) {
  Samples<Family> kept;
  std::copy_if(samples.begin(), samples.end(), std::back_inserter(kept), keep);
  return kept;
}

inline constexpr double kAnchoredClockSd = 0.05;

// Achieved / quoted flop/s of one large matrix product: of the sixty largest (the largest third, where there
// are fewer) the one that nine in ten do not exceed (those of hundreds of milliseconds throttle small
// boards). By data set, GPU and precision: "set|gpu|fp32".
using Anchors = std::map<std::string, double>;

// What is known of clocks without a fit.
struct ClockKnowledge {
  Anchors anchors;
  std::map<std::string, Prior> expected;  // by GPU, from the data sheet
};
[[nodiscard]] ClockKnowledge clock_knowledge(std::span<const Record> records, const GpuSpecs& gpus);

template <class Family>
[[nodiscard]] std::optional<double> anchor_of(const Sample<Family>& sample, const ClockKnowledge& clocks);

// By an anchor where asked for and there is one, else from the data sheet.
template <class Family>
[[nodiscard]] Prior clock_of(const Sample<Family>& sample, const ClockKnowledge& clocks, bool anchored);

// For a fit to samples of several GPUs.
template <class Family>
[[nodiscard]] FitOptions fit_options(const Samples<Family>& samples, const ClockKnowledge& clocks);

// For a fit to the samples of one GPU: priors are what its generation has.
template <class Family>
[[nodiscard]] FitOptions options_around(const FamilyFit& shared);

template <class Family>
[[nodiscard]] double formula_of(const Sample<Family>& s, const FamilyFit& fit,
                                const AchievedFraction<double>& sustained) {
  return kernel_time<Family>(s.call, s.hardware, sustained, fit.parameters).parts.total;
}

template <class Family>
struct Residual {
  ResidualRow row;
  const Sample<Family>* sample;
};

// What a fit leaves of its own samples; times that are mostly launch floor say little and are left out.
template <class Family>
[[nodiscard]] std::vector<Residual<Family>> residuals_of(const Samples<Family>& samples,
                                                         const FamilyFit& fit);

// What a GPU that was not measured is predicted from: the other GPUs of the library generation least unlike
// its own, of the same library and precision. Generations differ by their versions; by two more where none of
// their GPUs has the GPU's architecture (the same major compute capability), because libraries choose other
// kernels there.
template <class Family>
[[nodiscard]] Samples<Family> same_architecture(const Sample<Family>& held_out, const Samples<Family>& all);

// Every other GPU's of the same library and precision, whatever the generation.
template <class Family>
[[nodiscard]] Samples<Family> other_gpus(const Sample<Family>& held_out, const Samples<Family>& all);

// Those whose residuals tell something of the GPU: its own generation's, or its own architecture's.
template <class Family>
[[nodiscard]] Samples<Family> informative(const Sample<Family>& held_out, const Samples<Family>& kin);

// A fit to samples of one generation, in which what the samples of all generations say is the prior.
template <class Family>
[[nodiscard]] FamilyFit fit_with_generations(const Samples<Family>& samples, const Samples<Family>& all,
                                             FitOptions options);

// The value that a share of the values does not exceed; kDefaultInterval where there is none.
inline constexpr double kDefaultInterval = 1.28;
[[nodiscard]] double quantile(std::vector<double> values, double share);

[[nodiscard]] std::string precision_of(std::string_view block);  // "cudnn6/fp32" -> fp32

// One row for each call: the median over the GPUs that it was measured on, in which GPUs of an architecture
// (the same major compute capability) count twice; 0: none does. One card that does otherwise than the others
// (TITAN X Pascal with an early CUDA 8 in DeepBench) does not count then.
template <class Family>
[[nodiscard]] std::vector<Residual<Family>> medians_over_gpus(std::vector<Residual<Family>> residuals,
                                                              int architecture);

// How to interpolate them: between the calls of one GPU, or of several.
template <class Family>
[[nodiscard]] Kriging kriging_of(const std::vector<Residual<Family>>& residuals);

[[nodiscard]] inline int architecture_of(const Hardware& hardware) {
  return static_cast<int>(hardware.compute_capability / 10);
}

// Fitted clocks over what is known of them: median over the GPUs, and the spread of the logarithm.
struct ClockRatio {
  double median = 1;
  double sd = 0;
};
template <class Family>
[[nodiscard]] ClockRatio clock_ratio(const Samples<Family>& samples, const FamilyFit& fit,
                                     const ClockKnowledge& clocks, bool anchored);

// How many standard deviations 80 % of the rows lie within, estimated from a table; a row that stands in it
// is left out ...
[[nodiscard]] double interval_of(const ResidualTable& table, const std::vector<ResidualRow>& rows,
                                 const Kriging& kriging);

// ... and when each GPU is: its own mean, which is its clock's, does not count.
template <class Family>
[[nodiscard]] double interval_between_gpus(const std::vector<Residual<Family>>& residuals,
                                           const Kriging& kriging);

}  // namespace tbdsim
