#include "calibrate/framework_fit/framework_fit.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <ceres/ceres.h>

namespace tbdsim {
namespace {

constexpr double kLeastSpread = 0.02, kMostSpread = 0.1;  // estimates: repeats, what kernels' profiles miss
constexpr double kLossBend = 2;  // in spreads: runs farther off count less, what misses is not the CPU side
constexpr double kGpuSd = 0.15;  // of ln(factor). Estimate: convolutions of a GPU left out are off by as much
constexpr double kStep = 1e-3;   // of a logarithm, for differences
constexpr double kToldSd = 0.7;  // of the prior sd: data that say as much as the prior leave 1 / sqrt 2
constexpr double kToldMove = 1.0;  // in prior sd
constexpr double kAtBound = 1e-4;  // of a logarithm

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

// Of one run, by the logarithms of all constants (the first block) and of its GPU's factor (the second).
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
      std::vector<double> moved(x[0], x[0] + of_.constants.size());
      for (std::size_t i = 0; i < moved.size(); ++i) {
        moved[i] = x[0][i] + kStep;
        const double above = at(moved.data(), x[1][0]);
        moved[i] = x[0][i] - kStep;
        jacobians[0][i] = (above - at(moved.data(), x[1][0])) / (2 * kStep);
        moved[i] = x[0][i];
      }
    }
    if (jacobians != nullptr && jacobians[1] != nullptr) {
      jacobians[1][0] = (at(x[0], x[1][0] + kStep) - at(x[0], x[1][0] - kStep)) / (2 * kStep);
    }
    return std::isfinite(residual[0]);
  }

 private:
  double at(const double* logs, double gpu) const {
    const Framework changed =
        with_kernel_factor(with_constants(of_.framework, of_.constants, logs), std::exp(gpu));
    return log_error(row_, changed) / of_.spread;
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
  ceres::Solver::Summary summary;
  ceres::Solve(solver, &problem, &summary);
  x.cost = summary.final_cost;
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

Solution best_from(const Starts& starts, const FitProblem& of, const Progress& progress) {
  Solution best;
  for (const std::vector<double>& start : starts) {
    progress();
    Solution found = solve_from(start, of);
    if (found.cost < best.cost) best = std::move(found);
  }
  return best;
}

// Of the errors that are left, as a standard deviation; half of them are smaller whatever the others are.
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
  constexpr double kOfMedian = 1.4826;  // of a normal distribution
  const double spread =
      kOfMedian * errors[errors.size() / 2] * std::sqrt(n / (n - static_cast<double>(fitted)));
  return std::clamp(spread, kLeastSpread, kMostSpread);
}

FittedConstant fitted(const FitConstant& constant, const Framework& framework, double log, double sd) {
  FittedConstant f{
      .constant = constant, .before = value_of(constant, framework), .value = std::exp(log), .sd = sd};
  f.at_bound = std::min(log - std::log(constant.least), std::log(constant.most) - log) < kAtBound;
  const double move = std::abs(log - std::log(f.before));
  f.told = sd < kToldSd * constant.sd || move > kToldMove * constant.sd;
  if (!f.told) f.value = f.before;
  return f;
}

FrameworkFit result_of(const FitProblem& of, const Solution& solution) {
  FrameworkFit fit{{}, of.framework, {}, of.spread};
  for (std::size_t i = 0; i < of.constants.size(); ++i) {
    fit.constants.push_back(fitted(of.constants[i], of.framework, solution.logs[i], solution.sds[i]));
    if (fit.constants[i].told) set_value(of.constants[i], fit.constants[i].value, fit.framework);
  }
  for (const auto& [gpu, log] : solution.gpus) fit.gpus[gpu] = std::exp(log);
  return fit;
}

std::vector<FitConstant> told_of(const FrameworkFit& fit) {
  std::vector<FitConstant> told;
  for (const FittedConstant& f : fit.constants) {
    if (f.told) told.push_back(f.constant);
  }
  return told;
}

// Of those that the runs do not tell the one that they say least of; when they tell all, any. One at a time:
// of two that can stand for each other the runs may well tell one.
std::size_t least_told_of(const FrameworkFit& fit) {
  const auto say = [](const FittedConstant& f) { return std::pair(f.told, -f.sd / f.constant.sd); };
  const auto least =
      std::min_element(fit.constants.begin(), fit.constants.end(),
                       [&](const FittedConstant& a, const FittedConstant& b) { return say(a) < say(b); });
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
    const std::size_t least_told = least_told_of(fit);
    if (!fit.constants[least_told].told && free.size() > 1) {
      free.erase(free.begin() + static_cast<std::ptrdiff_t>(least_told));
      continue;
    }
    fit.constants.clear();
    for (const FitConstant& constant : constants) fit.constants.push_back(found.at(constant.name));
    return fit;
  }
}

FrameworkFit refit_framework(const Framework& framework, const FrameworkFit& whole, const RowsToFit& rows,
                             const Progress& progress) {
  const std::vector<FitConstant> told = told_of(whole);
  if (told.empty()) return {whole.constants, framework, {}, whole.spread};
  const FitProblem problem{framework, told, rows, whole.spread};
  return result_of(problem,
                   best_from({present(framework, told), present(whole.framework, told)}, problem, progress));
}

}  // namespace tbdsim
