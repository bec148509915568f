// Residuals of a fit, ln(measured / formula): their table for interpolation, and the width of intervals.
#pragma once

#include <vector>

#include "calibrate/fit/family_fit.h"
#include "calibrate/fit/sample_selection.h"
#include "costmodel/residuals/residual_table.h"

namespace tbdsim {

// Seconds of the sample's call by the fitted formula.
template <class Family>
[[nodiscard]] double formula_of(const Sample<Family>& s, const FamilyFit& fit,
                                const AchievedFraction<double>& sustained);

template <class Family>
struct SampleResidual {
  ResidualRow row;
  const Sample<Family>* sample;
};

// ln(measured / formula) of samples of fitted GPUs. Times below 1.5 launch floors are left out: most of them
// is the launch; so are ops whose floor was not fitted.
template <class Family>
[[nodiscard]] std::vector<SampleResidual<Family>> residuals_of(const Samples<Family>& samples,
                                                               const FamilyFit& fit);

// One row for each call: the weighted median over the GPUs that it was measured on. GPUs of `architecture` (a
// major compute capability; 0: none) count twice. A median ignores one GPU that differs from all others
// (TITAN X Pascal with an early CUDA 8 in DeepBench).
template <class Family>
[[nodiscard]] std::vector<SampleResidual<Family>> medians_over_gpus(
    std::vector<SampleResidual<Family>> residuals, int architecture);

// Kriging parameters for interpolation between calls of one GPU, or of several (kriging_fit.h).
template <class Family>
[[nodiscard]] Kriging kriging_of(const std::vector<SampleResidual<Family>>& residuals);

// Half the width of an 80 % interval, in predictive standard deviations: the 80 % quantile of |error| / sd.
// `deviations`: |error| / sd of each estimate; kDefaultInterval where there are none.
inline constexpr double kDefaultInterval = 1.28;
[[nodiscard]] double interval_width(std::vector<double> deviations);

// The interval_width of the rows when each is estimated from `table`; a row that is in the table is left out
// of it.
[[nodiscard]] double interval_of(const ResidualTable& table, const std::vector<ResidualRow>& rows,
                                 const Kriging& kriging);

// The interval_width when each GPU in turn is estimated from the others. The median of its errors, which its
// clock explains, is subtracted first.
template <class Family>
[[nodiscard]] double interval_between_gpus(const std::vector<SampleResidual<Family>>& residuals,
                                           const Kriging& kriging);

}  // namespace tbdsim
