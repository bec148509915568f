// Components of the 80 % intervals that hold 80 % of the runs that nobody looked at while the model was made,
// from errors of rows of split `fit`. variance_components.h says how what runs share is divided among GPU,
// version, model, set and rest. Their common factor m, the kernels' K, the network's N and the factor d of
// development rows, whose errors are smaller, because forms of the model were chosen with them in view,
// minimize
//
//   sum_i w_i (e_i - h_i) (0.8 - [e_i < h_i]),  h_i = 1.2816 sd_i, times d for development rows
//
// with e_i = |ln(predicted time / measured time)| and sd_i the deviation of the prediction: the expected
// value of this loss is least where 80 % of errors lie within h (quantile regression; Koenker and Bassett
// 1978). Exchange, host and framework's factor stay as kComponents has them. d is in no prediction. A set of
// n rows counts as much as n / (1 + 0.1 (n - 1)) independent ones (Kish's design effect): errors within a set
// have a correlation of 0.07 (pairs, by rows) to 0.11 (the set's variance over that of set, model and rest).
#pragma once

#include <span>
#include <string>
#include <vector>

#include "calibrate/framework_fit/variance_components.h"

namespace tbdsim {

struct IntervalFit {
  VarianceFit variance;                  // its components are those of the intervals
  double of_development = 1;             // d; 1 without development rows
  std::vector<std::string> unexplained;  // sets whose runs lack a mechanism, and which set no component
};

// Throws UsageError for fewer than three runs and for a component that does not converge, with its name.
[[nodiscard]] IntervalFit fit_intervals(std::span<const RunError> runs);

}  // namespace tbdsim
