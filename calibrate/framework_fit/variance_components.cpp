#include "calibrate/framework_fit/variance_components.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <Eigen/Dense>

#include "hwspecs/base/error.h"

namespace tbdsim {
namespace {

constexpr double kMostError = 0.4;
constexpr std::size_t kFitted = kEffectNames.size();  // of which no runs share exchange, host and factor
constexpr std::size_t kLeastRuns = 3;

constexpr std::size_t index_of(Effect effect) { return static_cast<std::size_t>(effect); }

using Coefficients = Eigen::Matrix<double, Eigen::Dynamic, 1>;

// Effects that no two runs share.
bool is_of_one_run(std::size_t effect) {
  return effect == index_of(Effect::kernels) || effect == index_of(Effect::rest);
}

double cut_off(double error) { return std::clamp(error, -kMostError, kMostError); }

// Coefficients of the variances in the expected product of two runs' errors; of one with itself where `same`.
Coefficients shared(const RunError& a, const RunError& b, bool same) {
  const auto both = [&](Effect effect) {
    return a.exposure[index_of(effect)] * b.exposure[index_of(effect)];
  };
  Coefficients c = Coefficients::Zero(kFitted);
  if (a.gpu == b.gpu) c[static_cast<Eigen::Index>(Effect::gpu)] = both(Effect::gpu);
  if (a.version == b.version) c[static_cast<Eigen::Index>(Effect::version)] = both(Effect::version);
  if (a.model == b.model) {
    c[static_cast<Eigen::Index>(Effect::model)] = both(Effect::model);
    c[static_cast<Eigen::Index>(Effect::network)] = both(Effect::network);
  }
  if (a.set == b.set) c[static_cast<Eigen::Index>(Effect::set)] = both(Effect::set);
  if (!same) return c;
  c[static_cast<Eigen::Index>(Effect::kernels)] = both(Effect::kernels);
  c[static_cast<Eigen::Index>(Effect::rest)] = both(Effect::rest);
  return c;
}

// Sums of squares and products of the least squares problem: minimizes x'Ax - 2 b'x.
struct Normal {
  Eigen::MatrixXd a = Eigen::MatrixXd::Zero(kFitted, kFitted);
  Coefficients b = Coefficients::Zero(kFitted);
  std::array<bool, kFitted> found{};  // in a product of two different runs or, for kernels and rest, of one
};

Normal normal_of(std::span<const RunError> runs) {
  Normal normal;
  const auto of_known = [&](const RunError& run, Effect effect) {
    return std::pow(kComponents[index_of(effect)] * run.exposure[index_of(effect)], 2);
  };
  for (std::size_t i = 0; i < runs.size(); ++i) {
    for (std::size_t j = i; j < runs.size(); ++j) {
      const Coefficients c = shared(runs[i], runs[j], i == j);
      if (c.isZero()) continue;
      double product = cut_off(runs[i].log_error) * cut_off(runs[j].log_error);
      if (i == j) {
        for (const Effect known : {Effect::exchange, Effect::host, Effect::factor})
          product -= of_known(runs[i], known);
      }
      normal.a += c * c.transpose();
      normal.b += c * product;
      for (std::size_t e = 0; e < kFitted; ++e) {
        normal.found[e] =
            normal.found[e] || (c[static_cast<Eigen::Index>(e)] != 0 && (i != j || is_of_one_run(e)));
      }
    }
  }
  return normal;
}

// The non-negative solution, by trying every set of effects above zero.
Coefficients solution_of(const Normal& normal) {
  Coefficients best = Coefficients::Zero(kFitted);
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t set = 0; set < std::size_t{1} << kFitted; ++set) {
    std::vector<Eigen::Index> free;
    for (std::size_t e = 0; e < kFitted; ++e) {
      if (normal.found[e] && (set >> e & std::size_t{1}) != 0) free.push_back(static_cast<Eigen::Index>(e));
    }
    Coefficients x = Coefficients::Zero(kFitted);
    if (!free.empty()) {
      const Eigen::MatrixXd a = normal.a(free, free);
      const Eigen::VectorXd b = normal.b(free);
      const Eigen::VectorXd solved = a.completeOrthogonalDecomposition().solve(b);
      for (std::size_t f = 0; f < free.size(); ++f) x[free[f]] = solved[static_cast<Eigen::Index>(f)];
    }
    if (x.minCoeff() < 0) continue;
    const double value = x.dot(normal.a * x) - 2 * normal.b.dot(x);
    if (value < least) {
      least = value;
      best = x;
    }
  }
  return best;
}

std::vector<std::string> sets_of_one(std::span<const RunError> runs) {
  std::map<std::string, int> counts;
  for (const RunError& run : runs) ++counts[run.set];
  std::vector<std::string> sets;
  for (const auto& [set, count] : counts) {
    if (count == 1) sets.push_back(set);
  }
  return sets;
}

}  // namespace

VarianceFit variance_components(std::span<const RunError> runs) {
  if (runs.size() < kLeastRuns)
    throw UsageError("variance components of " + std::to_string(runs.size()) + " runs; expected " +
                     std::to_string(kLeastRuns) + " or more");
  const Normal normal = normal_of(runs);
  const Coefficients variances = solution_of(normal);
  VarianceFit fit{.components = kComponents, .sets_of_one = sets_of_one(runs), .pooled = {}};
  for (std::size_t e = 0; e < kFitted; ++e) {
    fit.pooled[e] = !normal.found[e];
    if (normal.found[e]) fit.components[e] = std::sqrt(variances[static_cast<Eigen::Index>(e)]);
  }
  return fit;
}

double coverage_of(const Effects& components, std::span<const RunError> runs) {
  double inside = 0;
  for (const RunError& run : runs) {
    Effects deviations = run.exposure;
    for (std::size_t e = 0; e < deviations.size(); ++e) deviations[e] *= components[e];
    if (std::abs(run.log_error) <= kEightyPercent * total_deviation(deviations)) ++inside;
  }
  return runs.empty() ? 0 : inside / static_cast<double>(runs.size());
}

}  // namespace tbdsim
