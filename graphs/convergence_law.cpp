#include "graphs/convergence_law.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>

#include "graphs/critical_batch.h"

namespace tbdsim {
namespace {

// Penalty of the squared distance of the exponent from 1, in units of ln^2: the ratio of two variances, of
// ln(epochs) at a batch and of exponents among targets.
constexpr double kPenalty = (kNearNoise / kExponentSpread) * (kNearNoise / kExponentSpread);
constexpr int kSteps = 40;       // of a line of the grid
constexpr int kRefinements = 6;  // each looks at a tenth of the grid before

// ln of the mean epochs of one batch.
struct LogPoint {
  double batch = 0;
  double log_epochs = 0;
  double variance = 0;  // of that mean, by the luck of its runs
};

std::vector<LogPoint> log_points(std::span<const ConvergencePoint> points) {
  struct Sums {
    double epochs = 0, squares = 0, runs = 0;  // over runs: of epochs, of squared spreads
  };
  std::map<double, Sums> sums;
  for (const ConvergencePoint& point : points) {
    Sums& sum = sums[point.batch];
    sum.epochs += point.epochs * point.runs;
    sum.squares += point.spread * point.spread * point.runs;
    sum.runs += point.runs;
  }
  std::vector<LogPoint> logs;
  for (const auto& [batch, sum] : sums)
    logs.push_back({batch, std::log(sum.epochs / sum.runs), sum.squares / (sum.runs * sum.runs)});
  return logs;
}

double rise(double batch, double log_critical, double exponent) {
  return std::log1p(std::exp(exponent * (std::log(batch) - log_critical)));
}

struct Trial {
  double loss = std::numeric_limits<double>::infinity();
  double log_minimum = 0, log_critical = 0, exponent = 1;
};

// The best E_min for the other two.
Trial trial(const std::vector<LogPoint>& points, double log_critical, double exponent) {
  double mean = 0, squares = 0;
  for (const LogPoint& p : points) {
    const double residual = p.log_epochs - rise(p.batch, log_critical, exponent);
    mean += residual;
    squares += residual * residual;
  }
  const auto count = static_cast<double>(points.size());
  mean /= count;
  const double away = exponent - 1;
  return {std::max(0.0, squares - count * mean * mean) + kPenalty * away * away, mean, log_critical,
          exponent};
}

}  // namespace

double ConvergenceLaw::epochs_at(double batch) const {
  return minimum * (1 + std::pow(batch / critical_batch, exponent));
}

ConvergenceLaw fit_convergence_law(std::span<const ConvergencePoint> points) {
  const std::vector<LogPoint> logs = log_points(points);
  assert(!logs.empty());
  if (logs.size() == 1) return {std::exp(logs[0].log_epochs), logs[0].batch * kLargestCritical, 1};
  const double least = std::log(logs.front().batch * kLeastCritical);
  const double most = std::log(logs.back().batch * kLargestCritical);
  double critical_width = most - least, exponent_width = kLargestExponent - kLeastExponent;
  Trial best;
  best.log_critical = (least + most) / 2;
  best.exponent = (kLeastExponent + kLargestExponent) / 2;
  for (int refinement = 0; refinement < kRefinements; ++refinement) {
    const Trial middle = best;
    for (int i = 0; i <= kSteps; ++i) {
      for (int j = 0; j <= kSteps; ++j) {
        const double x = static_cast<double>(i) / kSteps - 0.5, y = static_cast<double>(j) / kSteps - 0.5;
        const Trial next =
            trial(logs, std::clamp(middle.log_critical + x * critical_width, least, most),
                  std::clamp(middle.exponent + y * exponent_width, kLeastExponent, kLargestExponent));
        if (next.loss < best.loss) best = next;
      }
    }
    critical_width /= 10;
    exponent_width /= 10;
  }
  return {std::exp(best.log_minimum), std::exp(best.log_critical), best.exponent};
}

double epochs_near(const ConvergenceLaw& law, std::span<const ConvergencePoint> points, double every,
                   double batch) {
  double differences = 0, weights = 1 / (kNearSpread * kNearSpread);
  for (const LogPoint& point : log_points(points)) {
    const double away = std::log(batch / point.batch) / kNearLength;
    const double interval = every / std::exp(point.log_epochs);
    const double variance = kNearNoise * kNearNoise + point.variance + interval * interval / 12;
    const double weight = std::exp(-away * away / 2) / variance;
    differences += weight * (point.log_epochs - std::log(law.epochs_at(point.batch)));
    weights += weight;
  }
  return law.epochs_at(batch) * std::exp(differences / weights);
}

std::vector<ConvergencePoint> without_batch(std::span<const ConvergencePoint> points, double batch) {
  std::vector<ConvergencePoint> others;
  std::copy_if(points.begin(), points.end(), std::back_inserter(others),
               [&](const ConvergencePoint& point) { return point.batch != batch; });
  return others;
}

std::vector<LeftOutBatch> left_out_batches(std::span<const ConvergencePoint> points, double every) {
  const std::vector<LogPoint> logs = log_points(points);
  std::vector<LeftOutBatch> left_out;
  if (logs.size() < 3) return left_out;
  for (std::size_t i = 0; i < logs.size(); ++i) {
    const std::vector<ConvergencePoint> others = without_batch(points, logs[i].batch);
    const double expected = epochs_near(fit_convergence_law(others), others, every, logs[i].batch);
    double outside = 1;
    if (i == 0) outside = logs[1].batch / logs[0].batch;
    if (i + 1 == logs.size()) outside = logs[i].batch / logs[i - 1].batch;
    const double epochs = std::exp(logs[i].log_epochs);
    left_out.push_back({logs[i].batch, epochs, expected / epochs, outside});
  }
  return left_out;
}

}  // namespace tbdsim
