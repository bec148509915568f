// Fits constants of a framework to measured training runs. Training steps and kernel costs are predicted
// once; only the timeline is simulated again for other constants.
//
// Least squares in the logarithms of the constants and of one factor for each GPU and precision. Residuals:
//
//   ln(predicted / measured) / spread         each run's iteration times; Cauchy loss with its bend at 2
//   ln(constant / present value) / prior sd   each constant
//   ln(factor) / 0.15                         each GPU and precision
//
// started from the present values and from one prior sd to either side of each; deterministic. `spread` is
// the standard deviation of ln(predicted / measured) that a first fit, with a spread of 0.1, leaves: 1.48 *
// median of its absolute errors, clamped to 0.02 to 0.1. The factor of a GPU absorbs what its profile misses
// of all kernel times, so that no constant has to; it is reported, and no prediction uses it.
//
// The runs determine a constant where its standard error is below 0.7 prior sd or where they move it by more
// than one prior sd. The others keep their present values and are fixed, the least determined first, while
// the rest are fitted again.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "calibrate/framework_fit/constants.h"
#include "calibrate/framework_fit/run_rows.h"

namespace tbdsim {

struct FittedConstant {
  FitConstant constant;
  double before = 0, value = 0;  // seconds, or a factor
  double sd = 0;                 // rough standard error of ln(value), from the Jacobian and the prior
  bool at_bound = false;
  bool determined = true;  // by the runs; else `value` is `before`
};

struct FrameworkFit {
  std::vector<FittedConstant> constants;
  Framework framework;                 // with the fitted constants
  std::map<std::string, double> gpus;  // by GPU and precision: factor on the time of all kernels
  double spread = 0;                   // standard deviation of ln(predicted / measured) after the fit
};

using RowsToFit = std::vector<const RunRow*>;

// The key of FrameworkFit::gpus: "titanxp, fp32".
[[nodiscard]] std::string gpu_and_precision(const RunRow& row);

// The framework with the times of all kernels multiplied by `factor`.
[[nodiscard]] Framework with_kernel_factor(Framework framework, double factor);

// `progress` is called before each solution of the least squares and may throw to stop.
[[nodiscard]] FrameworkFit fit_framework(const Framework& framework, std::span<const FitConstant> constants,
                                         const RowsToFit& rows, const std::function<void()>& progress);

// Fits the constants that the rows of `whole` determined to some of these rows. Starts from the present
// values and from the solution of `whole`.
[[nodiscard]] FrameworkFit refit_framework(const Framework& framework, const FrameworkFit& whole,
                                           const RowsToFit& rows, const std::function<void()>& progress);

}  // namespace tbdsim
