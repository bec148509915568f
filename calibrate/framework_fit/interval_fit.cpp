#include "calibrate/framework_fit/interval_fit.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <iterator>
#include <limits>
#include <map>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "hwspecs/base/error.h"

namespace tbdsim {
namespace {

constexpr double kShare = 0.8;
constexpr double kCorrelation = 0.1;  // of errors within a set: 0.07 to 0.11
constexpr double kExplained = 0.2;    // median error of a set, in ln(time): above it a mechanism is missing
constexpr std::size_t kLeastOfSet = 3;

constexpr std::size_t index_of(Effect effect) { return static_cast<std::size_t>(effect); }

// The numbers that the search moves.
enum Parameter : std::size_t { kKernels, kNetwork, kCommonFactor, kDevelopment, kParameters };
using Point = std::array<double, kParameters>;
constexpr std::array<std::string_view, kParameters> kNames = {"kernels", "class of network", "rest",
                                                              "development rows"};
constexpr Point kLeast = {0.001, 0.001, 0.05, 0.1};
constexpr Point kMost = {2, 2, 20, 1};
using Searched = std::vector<std::size_t>;  // those of them that the runs tell

std::map<std::string, std::vector<double>> errors_by_set(std::span<const RunError> runs) {
  std::map<std::string, std::vector<double>> errors;
  for (const RunError& run : runs) errors[run.set].push_back(std::abs(run.log_error));
  return errors;
}

std::vector<std::string> unexplained_sets(std::span<const RunError> runs) {
  std::vector<std::string> sets;
  for (auto& [set, errors] : errors_by_set(runs)) {
    std::sort(errors.begin(), errors.end());
    if (errors.size() >= kLeastOfSet && errors[errors.size() / 2] > kExplained) sets.push_back(set);
  }
  return sets;
}

// A run's variance is known + kernels K^2 + network N^2 + shared m^2.
struct Sample {
  double error = 0, weight = 0;
  double kernels = 0, network = 0, shared = 0, known = 0;
  bool development = false;
};

std::vector<Sample> samples_of(std::span<const RunError> runs, const Effects& components) {
  std::map<std::string, double> sizes;
  for (const RunError& run : runs) ++sizes[run.set];
  std::vector<Sample> samples;
  for (const RunError& run : runs) {
    const auto square = [&](Effect effect) {
      return std::pow(run.exposure[index_of(effect)] * components[index_of(effect)], 2);
    };
    samples.push_back({.error = std::abs(run.log_error),
                       .weight = 1 / (1 + kCorrelation * (sizes[run.set] - 1)),
                       .kernels = std::pow(run.exposure[index_of(Effect::kernels)], 2),
                       .network = std::pow(run.exposure[index_of(Effect::network)], 2),
                       .shared = square(Effect::gpu) + square(Effect::version) + square(Effect::model) +
                                 square(Effect::set) + square(Effect::rest),
                       .known = square(Effect::exchange) + square(Effect::host) + square(Effect::factor),
                       .development = run.development});
  }
  return samples;
}

double loss_of(const Point& at, const std::vector<Sample>& samples) {
  double sum = 0;
  for (const Sample& p : samples) {
    const double variance = p.known + p.kernels * at[kKernels] * at[kKernels] +
                            p.network * at[kNetwork] * at[kNetwork] +
                            p.shared * at[kCommonFactor] * at[kCommonFactor];
    const double over =
        p.error - kEightyPercent * std::sqrt(variance) * (p.development ? at[kDevelopment] : 1);
    sum += p.weight * over * (over > 0 ? kShare : kShare - 1);
  }
  return sum;
}

Point moved(Point at, std::size_t parameter, double factor) {
  at[parameter] = std::clamp(at[parameter] * factor, kLeast[parameter], kMost[parameter]);
  return at;
}

// Steps in factors, one parameter up or down and a second one the other way, finer and finer.
Point searched(Point best, const Searched& parameters, const std::vector<Sample>& samples) {
  constexpr double kFirst = 1.6, kLast = 1.002;
  double least = loss_of(best, samples);
  for (double factor = kFirst; factor > kLast;) {
    bool better = false;
    for (const std::size_t i : parameters) {
      for (const std::size_t j : parameters) {
        for (const double step : {factor, 1 / factor}) {
          const Point one = moved(best, i, step);
          const Point tried = i == j ? one : moved(one, j, 1 / step);
          const double loss = loss_of(tried, samples);
          if (loss < least) {
            best = tried;
            least = loss;
            better = true;
          }
        }
      }
    }
    if (!better) factor = std::sqrt(factor);
  }
  return best;
}

// The best of searches from several places: the loss has corners.
Point minimum_of(const std::vector<Sample>& samples) {
  Searched parameters{kKernels, kNetwork, kCommonFactor};
  const bool development = std::any_of(samples.begin(), samples.end(), std::mem_fn(&Sample::development));
  if (development) parameters.push_back(kDevelopment);
  Point best{};
  double least = std::numeric_limits<double>::infinity();
  for (Point start : {Point{0.1, 0.1, 1, 0.8}, Point{0.2, 0.05, 1.5, 0.7}, Point{0.05, 0.15, 0.7, 0.9}}) {
    if (!development) start[kDevelopment] = 1;
    const Point found = searched(start, parameters, samples);
    const double loss = loss_of(found, samples);
    if (loss < least) {
      least = loss;
      best = found;
    }
  }
  return best;
}

void expect_converged(const Point& at) {
  for (const Parameter p : {kKernels, kNetwork, kCommonFactor}) {
    if (at[p] >= kMost[p])
      throw UsageError(
          fmt::format("the fit of '{}' does not converge: it grows beyond {}", kNames[p], kMost[p]));
  }
}

}  // namespace

IntervalFit fit_intervals(std::span<const RunError> runs) {
  IntervalFit fit{.variance = {}, .of_development = 1, .unexplained = unexplained_sets(runs)};
  std::vector<RunError> explained;
  std::copy_if(runs.begin(), runs.end(), std::back_inserter(explained), [&](const RunError& run) {
    return std::find(fit.unexplained.begin(), fit.unexplained.end(), run.set) == fit.unexplained.end();
  });
  fit.variance = variance_components(explained);
  Effects& components = fit.variance.components;
  const std::vector<Sample> samples = samples_of(explained, components);
  const Point at = minimum_of(samples);
  expect_converged(at);
  fit.of_development = at[kDevelopment];
  for (const auto& [effect, value] :
       {std::pair(Effect::kernels, at[kKernels]), std::pair(Effect::network, at[kNetwork])}) {
    const std::size_t e = index_of(effect);
    const bool seen = std::any_of(explained.begin(), explained.end(),
                                  [e](const RunError& run) { return run.exposure[e] > 0; });
    fit.variance.pooled[e] = !seen;
    components[e] = seen ? value : kComponents[e];
  }
  for (const Effect shared : {Effect::gpu, Effect::version, Effect::model, Effect::set, Effect::rest})
    components[index_of(shared)] *= at[kCommonFactor];
  return fit;
}

}  // namespace tbdsim
