#include "calibrate/framework_fit/framework_fit.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <ceres/ceres.h>
#include <fmt/format.h>

#include "hwspecs/base/error.h"
#include "hwspecs/base/suggest.h"
#include "simulate/prediction/repredict.h"

namespace tbdsim {
namespace {

// Bounds of the spread. Estimates: repeated runs differ by 2 %, profiles of kernels miss up to 10 %.
constexpr double kLeastSpread = 0.02;
constexpr double kMostSpread = 0.1;
constexpr double kLossBend = 2;  // in spreads: runs farther off count less, their cause is not the CPU side
constexpr double kGpuSd = 0.15;  // of ln(factor). Estimate: convolutions of a GPU left out are off by as much
constexpr double kDifference = 1e-3;  // step of central differences, in logarithms
// A constant is determined below this standard error, in prior sds: data as informative as the prior leave
// 1 / sqrt(2). Or above this move.
constexpr double kDeterminedSd = 0.7;
constexpr double kDeterminedMove = 1.0;
constexpr int kMostIterations = 200;
constexpr double kAtBound = 1e-4;  // distance from a bound, in logarithms

using Constants = std::span<const FitConstant>;
using Progress = std::function<void()>;

Framework with_constants(Framework framework, Constants constants, const double* logs) {
  for (std::size_t i = 0; i < constants.size(); ++i) set_value(constants[i], std::exp(logs[i]), framework);
  return framework;
}

double log_error(const RunRow& row, const Framework& framework) {
  return std::log(iteration_time_with(framework, row.prediction) / row.measured);
}

struct FitProblem {
  const Framework& framework;
  Constants constants;
  const RowsToFit& rows;
  double spread;
};

// ln(predicted / measured) / spread of one run. Parameters: logarithms of all constants (the first block) and
// of the factor of the run's GPU (the second).
class RunResidual final : public ceres::CostFunction {
 public:
  RunResidual(const RunRow& row, const FitProblem& of) : row_(row), of_(of) {
    set_num_residuals(1);
    mutable_parameter_block_sizes()->push_back(static_cast<int>(of.constants.size()));
    mutable_parameter_block_sizes()->push_back(1);
  }

  bool Evaluate(double const* const* x, double* residual, double** jacobians) const override {
    residual[0] = at(x[0], x[1][0]);
    if (jacobians != nullptr && jacobians[0] != nullptr) {
      for (std::size_t i = 0; i < of_.constants.size(); ++i) jacobians[0][i] = by_constant(x[0], x[1][0], i);
    }
    if (jacobians != nullptr && jacobians[1] != nullptr) {
      const double above = at(x[0], x[1][0] + kDifference);
      const double below = at(x[0], x[1][0] - kDifference);
      jacobians[1][0] = (above - below) / (2 * kDifference);
    }
    return std::isfinite(residual[0]);
  }

 private:
  double at(const double* logs, double gpu) const {
    const Framework changed =
        with_kernel_factor(with_constants(of_.framework, of_.constants, logs), std::exp(gpu));
    return log_error(row_, changed) / of_.spread;
  }

  // Derivative by the logarithm of constant i.
  double by_constant(const double* logs, double gpu, std::size_t i) const {
    std::vector<double> moved(logs, logs + of_.constants.size());
    moved[i] = logs[i] + kDifference;
    const double above = at(moved.data(), gpu);
    moved[i] = logs[i] - kDifference;
    const double below = at(moved.data(), gpu);
    return (above - below) / (2 * kDifference);
  }

  const RunRow& row_;
  const FitProblem& of_;
};

// (x - centre) / sd of each number of a block.
class PriorResidual final : public ceres::CostFunction {
 public:
  PriorResidual(std::vector<double> centre, std::vector<double> sds)
      : centre_(std::move(centre)), sds_(std::move(sds)) {
    const int n = static_cast<int>(centre_.size());
    set_num_residuals(n);
    mutable_parameter_block_sizes()->push_back(n);
  }

  bool Evaluate(double const* const* x, double* residuals, double** jacobians) const override {
    const std::size_t n = centre_.size();
    for (std::size_t i = 0; i < n; ++i) residuals[i] = (x[0][i] - centre_[i]) / sds_[i];
    if (jacobians == nullptr || jacobians[0] == nullptr) return true;
    std::fill_n(jacobians[0], n * n, 0.0);
    for (std::size_t i = 0; i < n; ++i) jacobians[0][i * n + i] = 1 / sds_[i];
    return true;
  }

 private:
  std::vector<double> centre_, sds_;
};

// Logarithms of the constants, their standard errors, and logarithms of the GPUs' factors.
struct Solution {
  std::vector<double> logs, sds;
  std::map<std::string, double> gpus;
  double cost = std::numeric_limits<double>::infinity();
  bool converged = false;
};

std::vector<double> present(const Framework& framework, Constants constants) {
  std::vector<double> logs;
  for (const FitConstant& constant : constants) logs.push_back(std::log(value_of(constant, framework)));
  return logs;
}

void add_residuals(ceres::Problem& problem, Solution& x, const FitProblem& of) {
  problem.AddParameterBlock(x.logs.data(), static_cast<int>(of.constants.size()));
  std::vector<double> sds;
  for (const FitConstant& constant : of.constants) {
    const int i = static_cast<int>(sds.size());
    problem.SetParameterLowerBound(x.logs.data(), i, std::log(constant.least));
    problem.SetParameterUpperBound(x.logs.data(), i, std::log(constant.most));
    sds.push_back(constant.sd);
  }
  problem.AddResidualBlock(new PriorResidual(present(of.framework, of.constants), sds), nullptr,
                           x.logs.data());
  for (const RunRow* row : of.rows) x.gpus[gpu_and_precision(*row)] = 0;
  for (auto& [gpu, log] : x.gpus) problem.AddResidualBlock(new PriorResidual({0}, {kGpuSd}), nullptr, &log);
  for (const RunRow* row : of.rows) {
    problem.AddResidualBlock(new RunResidual(*row, of), new ceres::CauchyLoss(kLossBend), x.logs.data(),
                             &x.gpus.at(gpu_and_precision(*row)));
  }
}

std::vector<double> standard_errors(ceres::Problem& problem, const std::vector<double>& x) {
  const std::size_t n = x.size();
  ceres::Covariance::Options options;
  options.algorithm_type = ceres::DENSE_SVD;
  ceres::Covariance covariance(options);
  std::vector<double> square(n * n);
  std::vector<double> sds(n, std::numeric_limits<double>::infinity());
  const std::vector<std::pair<const double*, const double*>> blocks{{x.data(), x.data()}};
  if (!covariance.Compute(blocks, &problem)) return sds;
  if (!covariance.GetCovarianceBlock(x.data(), x.data(), square.data())) return sds;
  for (std::size_t i = 0; i < n; ++i) sds[i] = std::sqrt(square[i * n + i]);
  return sds;
}

Solution solve_from(std::vector<double> logs, const FitProblem& of) {
  Solution x{.logs = std::move(logs), .sds = {}, .gpus = {}};
  ceres::Problem problem;
  add_residuals(problem, x, of);
  ceres::Solver::Options solver;
  solver.linear_solver_type = ceres::DENSE_QR;
  solver.logging_type = ceres::SILENT;
  solver.max_num_iterations = kMostIterations;
  ceres::Solver::Summary summary;
  ceres::Solve(solver, &problem, &summary);
  x.cost = summary.final_cost;
  x.converged = summary.termination_type == ceres::CONVERGENCE;
  x.sds = standard_errors(problem, x.logs);
  return x;
}

using Starts = std::vector<std::vector<double>>;

// The present values, and one sd to either side of each.
Starts starts_around(const Framework& framework, Constants constants) {
  Starts starts{present(framework, constants)};
  for (std::size_t i = 0; i < constants.size(); ++i) {
    for (const double sd : {-constants[i].sd, constants[i].sd}) {
      starts.push_back(starts[0]);
      starts.back()[i] =
          std::clamp(starts[0][i] + sd, std::log(constants[i].least), std::log(constants[i].most));
    }
  }
  return starts;
}

// Throws UsageError, naming the constants, where the solver stopped before it was at a minimum.
void require_converged(const Solution& solution, Constants constants) {
  if (solution.converged) return;
  std::vector<std::string> names;
  for (const FitConstant& constant : constants) names.push_back(constant.name);
  throw UsageError(
      fmt::format("the fit of {} does not converge in {} iterations; expected fewer constants, or "
                  "more runs",
                  joined(names), kMostIterations));
}

Solution best_from(const Starts& starts, const FitProblem& of, const Progress& progress) {
  Solution best;
  for (const std::vector<double>& start : starts) {
    progress();
    Solution found = solve_from(start, of);
    if (found.cost < best.cost) best = std::move(found);
  }
  require_converged(best, of.constants);
  return best;
}

// Standard deviation of the errors that are left, estimated from their median, which outliers do not move.
double spread_left(const FitProblem& of, const Solution& solution) {
  const Framework framework = with_constants(of.framework, of.constants, solution.logs.data());
  std::vector<double> errors;
  for (const RunRow* row : of.rows) {
    const double gpu = std::exp(solution.gpus.at(gpu_and_precision(*row)));
    errors.push_back(std::abs(log_error(*row, with_kernel_factor(framework, gpu))));
  }
  const std::size_t fitted = of.constants.size() + solution.gpus.size();
  if (errors.size() <= fitted) return kMostSpread;
  std::nth_element(errors.begin(), errors.begin() + static_cast<std::ptrdiff_t>(errors.size() / 2),
                   errors.end());
  const auto n = static_cast<double>(errors.size());
  constexpr double kSdOfMedian = 1.4826;  // sd / median absolute error of a normal distribution
  const double spread =
      kSdOfMedian * errors[errors.size() / 2] * std::sqrt(n / (n - static_cast<double>(fitted)));
  return std::clamp(spread, kLeastSpread, kMostSpread);
}

FittedConstant fitted(const FitConstant& constant, const Framework& framework, double log, double sd) {
  FittedConstant f{
      .constant = constant, .before = value_of(constant, framework), .value = std::exp(log), .sd = sd};
  f.at_bound = std::min(log - std::log(constant.least), std::log(constant.most) - log) < kAtBound;
  const double move = std::abs(log - std::log(f.before));
  f.determined = sd < kDeterminedSd * constant.sd || move > kDeterminedMove * constant.sd;
  if (!f.determined) f.value = f.before;
  return f;
}

FrameworkFit result_of(const FitProblem& of, const Solution& solution) {
  FrameworkFit fit{{}, of.framework, {}, of.spread};
  for (std::size_t i = 0; i < of.constants.size(); ++i) {
    fit.constants.push_back(fitted(of.constants[i], of.framework, solution.logs[i], solution.sds[i]));
    if (fit.constants[i].determined) set_value(of.constants[i], fit.constants[i].value, fit.framework);
  }
  for (const auto& [gpu, log] : solution.gpus) fit.gpus[gpu] = std::exp(log);
  return fit;
}

std::vector<FitConstant> determined_of(const FrameworkFit& fit) {
  std::vector<FitConstant> determined;
  for (const FittedConstant& f : fit.constants) {
    if (f.determined) determined.push_back(f.constant);
  }
  return determined;
}

// Index of the constant with the largest standard error, in prior sds, among those that the runs do not
// determine; any where they determine all. Constants are fixed one at a time, since of two that can stand in
// for each other the runs may well determine one.
std::size_t least_determined(const FrameworkFit& fit) {
  const auto certainty = [](const FittedConstant& f) {
    return std::pair(f.determined, -f.sd / f.constant.sd);
  };
  const auto least = std::min_element(
      fit.constants.begin(), fit.constants.end(),
      [&](const FittedConstant& a, const FittedConstant& b) { return certainty(a) < certainty(b); });
  return static_cast<std::size_t>(least - fit.constants.begin());
}

}  // namespace

std::string gpu_and_precision(const RunRow& row) {
  const Scenario& scenario = row.prediction.scenario;
  return scenario.gpu + ", " + scenario.precision;
}

Framework with_kernel_factor(Framework framework, double factor) {
  for (double& of_kind : framework.factors) of_kind *= factor;
  return framework;
}

FrameworkFit fit_framework(const Framework& framework, Constants constants, const RowsToFit& rows,
                           const Progress& progress) {
  const Starts starts = starts_around(framework, constants);
  const FitProblem first{framework, constants, rows, kMostSpread};
  const double spread = spread_left(first, best_from(starts, first, progress));
  std::map<std::string, FittedConstant> found;
  std::vector<FitConstant> free(constants.begin(), constants.end());
  for (;;) {
    const FitProblem problem{framework, free, rows, spread};
    FrameworkFit fit = result_of(problem, best_from(starts_around(framework, free), problem, progress));
    for (const FittedConstant& f : fit.constants) found.insert_or_assign(f.constant.name, f);
    const std::size_t least_determined_index = least_determined(fit);
    if (!fit.constants[least_determined_index].determined && free.size() > 1) {
      free.erase(free.begin() + static_cast<std::ptrdiff_t>(least_determined_index));
      continue;
    }
    fit.constants.clear();
    for (const FitConstant& constant : constants) fit.constants.push_back(found.at(constant.name));
    return fit;
  }
}

FrameworkFit refit_framework(const Framework& framework, const FrameworkFit& whole, const RowsToFit& rows,
                             const Progress& progress) {
  const std::vector<FitConstant> determined = determined_of(whole);
  if (determined.empty()) return {whole.constants, framework, {}, whole.spread};
  const FitProblem problem{framework, determined, rows, whole.spread};
  return result_of(problem, best_from({present(framework, determined), present(whole.framework, determined)},
                                      problem, progress));
}

}  // namespace tbdsim
