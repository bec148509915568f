// Standard deviations of the effects of simulate/prediction/uncertainty.h that several runs share, from the
// errors of predictions of measured runs: method of moments for crossed random effects in closed form. The
// expected product of two runs' errors r = ln(predicted time / measured time) is the sum of the variances of
// what they share,
//
//   E[r_i r_j] = G^2 u_i u_j [same GPU] + V^2 [same unfitted version] + M^2 m_i m_j [same model] + S^2 [same set]
//              + N^2 [same model, of a class not measured]
//   E[r_i r_i] = the same + K^2 s_i^2 + R^2 + X^2 x_i^2 + H^2 h_i^2 + F^2 f_i^2
//
// and non-negative least squares over all pairs that share something gives all but X, H and F (MINQUE with
// equal weights; Rao 1971; in genetics Haseman and Elston 1972). X, H and F are not fitted: kComponents has
// them. Errors are cut off at 0.4, so that one program that the model does not describe sets no component.
// How wide intervals must be to hold 80 % of runs, interval_fit.h finds.
#pragma once

#include <array>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "simulate/prediction/uncertainty.h"

namespace tbdsim {

// One measured configuration.
struct RunError {
  double log_error = 0;  // ln(predicted time / measured time), the mean over its repeats
  Effects exposure{};
  std::string gpu, version, model, set;
  double predicted = 0;  // in the unit of the measurement
  int repeats = 1;
  bool development = false;  // forms of the model were chosen with this run in view
};

// Components of the intervals, and those among them that the runs do not tell.
struct VarianceFit {
  Effects components{};                  // standard deviations, as kComponents
  std::vector<std::string> sets_of_one;  // have no component of their own: the pooled one stands for them
  std::array<bool, kEffectNames.size()> pooled{};  // no two runs share it: the value of kComponents
};

// Throws UsageError for fewer than three runs.
[[nodiscard]] VarianceFit variance_components(std::span<const RunError> runs);

// Share of runs whose error lies within the 80 % interval of these components.
[[nodiscard]] double coverage_of(const Effects& components, std::span<const RunError> runs);

}  // namespace tbdsim
