// Fits constants of a framework to measured training runs. Steps and kernel costs are those of the runs'
// predictions; only the clocks run again with other constants.
//
// Least squares in the logarithms of the constants and of one factor for each GPU and precision, over
//
//   ln(predicted / measured time) / spread    of each run, with a Cauchy loss that bends at twice the spread
//   ln(constant / present value) / prior sd   of each constant
//   ln(factor) / 0.15                         of each GPU and precision
//
// from the present values and from one prior sd to either side of each. Deterministic. The spread is what a
// first fit, with 0.1, left: 1.48 times the median of its errors, 0.02 to 0.1. The factor of a GPU stands for
// what its profile misses of all kernel times, so that no constant has to; it is shown and no prediction uses
// it.
//
// A constant counts as told by the runs where its standard error is clearly below its prior's or where they
// moved it; the others stay as they are and are fitted no further.
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
  bool told = true;  // else `value` is `before`: an estimate
};

struct FrameworkFit {
  std::vector<FittedConstant> constants;
  Framework framework;                 // with them
  std::map<std::string, double> gpus;  // by GPU and precision: time of all kernels over what the profile says
  double spread = 0;                   // of ln(predicted / measured), with all that was fitted
};

using RowsToFit = std::vector<const RunRow*>;

// What has a factor of its own: "titanxp, fp32".
[[nodiscard]] std::string gpu_and_precision(const RunRow& row);

// As if every kernel took `factor` times as long.
[[nodiscard]] Framework with_kernel_factor(Framework framework, double factor);

// `progress` is called now and then and may throw to stop.
[[nodiscard]] FrameworkFit fit_framework(const Framework& framework, std::span<const FitConstant> constants,
                                         const RowsToFit& rows, const std::function<void()>& progress);

// Fits what `whole` was told, to some of its rows, from the present values and its solution.
[[nodiscard]] FrameworkFit refit_framework(const Framework& framework, const FrameworkFit& whole,
                                           const RowsToFit& rows, const std::function<void()>& progress);

}  // namespace tbdsim
