#include "calibrate/measure/statistics/statistics.h"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace tbdsim::measure {
namespace {
constexpr double kMadToSigma = 1.4826;  // 1 / quantile(0.75) of the standard normal distribution
}  // namespace

double median(std::span<const double> values) {
  assert(!values.empty());
  std::vector<double> sorted(values.begin(), values.end());
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
  std::nth_element(sorted.begin(), middle, sorted.end());
  if (sorted.size() % 2 == 1) return *middle;
  return 0.5 * (*middle + *std::max_element(sorted.begin(), middle));
}

Summary summarize(std::span<const double> samples) {
  const double center = median(samples);
  std::vector<double> deviations;
  deviations.reserve(samples.size());
  for (const double sample : samples) deviations.push_back(std::abs(sample - center));
  const double mad = median(deviations);
  return {.median = center,
          .spread = center > 0 ? kMadToSigma * mad / center : 0,
          .samples = static_cast<int>(samples.size())};
}

int more_samples(const StoppingRule& rule, std::span<const double> samples, double spent,
                 double call_seconds) {
  const int have = static_cast<int>(samples.size());
  const bool quiet = have >= rule.first_burst && summarize(samples).spread <= rule.spread;
  if (quiet || have >= rule.most_samples) return 0;
  const int wanted = std::min(have == 0 ? rule.first_burst : rule.next_burst, rule.most_samples - have);
  const double left = rule.most_seconds - spent;
  const double fit = call_seconds > 0 ? std::max(0.0, std::floor(left / call_seconds)) : wanted;
  const int affordable = fit < wanted ? static_cast<int>(fit) : wanted;
  return std::max(affordable, std::min(rule.fewest_samples - have, wanted));
}

}  // namespace tbdsim::measure
