#include "calibrate/framework_fit.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <ceres/ceres.h>

namespace tbdsim {
namespace {

constexpr double kSpread = 0.1;    // of ln(predicted / measured). Estimate: what validated kernels miss by
constexpr double kLossBend = 0.2;  // runs that are farther off count less: what misses is not the CPU side
constexpr double kStep = 1e-3;     // of ln(constant), for differences
constexpr double kToldSd = 0.7;    // of the prior sd: data that say as much as the prior give 1 / sqrt 2
constexpr double kToldMove = 0.5;  // of the prior sd
constexpr double kAtBound = 1e-4;  // of ln(constant)

using Constants = std::span<const FitConstant>;

Framework with_constants(Framework framework, Constants constants, const double* logs) {
  for (std::size_t i = 0; i < constants.size(); ++i) set_value(constants[i], std::exp(logs[i]), framework);
  return framework;
}

// Of one run, by the logarithms of all constants.
class RunResidual final : public ceres::CostFunction {
 public:
  RunResidual(const RunRow& row, const Framework& framework, Constants constants)
      : row_(row), framework_(framework), constants_(constants) {
    set_num_residuals(1);
    mutable_parameter_block_sizes()->push_back(static_cast<int>(constants.size()));
  }

  bool Evaluate(double const* const* x, double* residual, double** jacobians) const override {
    residual[0] = at(x[0]);
    if (jacobians != nullptr && jacobians[0] != nullptr) {
      std::vector<double> moved(x[0], x[0] + constants_.size());
      for (std::size_t i = 0; i < moved.size(); ++i) {
        moved[i] = x[0][i] + kStep;
        const double above = at(moved.data());
        moved[i] = x[0][i] - kStep;
        jacobians[0][i] = (above - at(moved.data())) / (2 * kStep);
        moved[i] = x[0][i];
      }
    }
    return std::isfinite(residual[0]);
  }

 private:
  double at(const double* logs) const {
    const Framework changed = with_constants(framework_, constants_, logs);
    return std::log(iteration_time_with(changed, row_.prediction) / row_.measured) / kSpread;
  }

  const RunRow& row_;
  const Framework& framework_;
  Constants constants_;
};

// (x - ln present value) / sd of each constant.
class PriorResidual final : public ceres::CostFunction {
 public:
  PriorResidual(Constants constants, std::vector<double> centre)
      : constants_(constants), centre_(std::move(centre)) {
    const int n = static_cast<int>(constants.size());
    set_num_residuals(n);
    mutable_parameter_block_sizes()->push_back(n);
  }

  bool Evaluate(double const* const* x, double* residuals, double** jacobians) const override {
    const std::size_t n = constants_.size();
    for (std::size_t i = 0; i < n; ++i) residuals[i] = (x[0][i] - centre_[i]) / constants_[i].sd;
    if (jacobians == nullptr || jacobians[0] == nullptr) return true;
    std::fill_n(jacobians[0], n * n, 0.0);
    for (std::size_t i = 0; i < n; ++i) jacobians[0][i * n + i] = 1 / constants_[i].sd;
    return true;
  }

 private:
  Constants constants_;
  std::vector<double> centre_;
};

// Logarithms of the constants and their standard errors.
struct Solution {
  std::vector<double> logs, sds;
  double cost = std::numeric_limits<double>::infinity();
};

std::vector<double> present(const Framework& framework, Constants constants) {
  std::vector<double> logs;
  for (const FitConstant& constant : constants) logs.push_back(std::log(value_of(constant, framework)));
  return logs;
}

std::vector<double> standard_errors(ceres::Problem& problem, const double* x, std::size_t n) {
  ceres::Covariance::Options options;
  options.algorithm_type = ceres::DENSE_SVD;
  ceres::Covariance covariance(options);
  std::vector<double> square(n * n), sds(n, std::numeric_limits<double>::infinity());
  const std::vector<std::pair<const double*, const double*>> blocks{{x, x}};
  if (!covariance.Compute(blocks, &problem) || !covariance.GetCovarianceBlock(x, x, square.data()))
    return sds;
  for (std::size_t i = 0; i < n; ++i) sds[i] = std::sqrt(square[i * n + i]);
  return sds;
}

Solution solve_from(std::vector<double> logs, const Framework& framework, Constants constants,
                    const RowsToFit& rows) {
  const int n = static_cast<int>(constants.size());
  ceres::Problem problem;
  problem.AddParameterBlock(logs.data(), n);
  for (int i = 0; i < n; ++i) {
    const FitConstant& constant = constants[static_cast<std::size_t>(i)];
    problem.SetParameterLowerBound(logs.data(), i, std::log(constant.least));
    problem.SetParameterUpperBound(logs.data(), i, std::log(constant.most));
  }
  for (const RunRow* row : rows) {
    problem.AddResidualBlock(new RunResidual(*row, framework, constants),
                             new ceres::CauchyLoss(kLossBend / kSpread), logs.data());
  }
  problem.AddResidualBlock(new PriorResidual(constants, present(framework, constants)), nullptr, logs.data());
  ceres::Solver::Options solver;
  solver.linear_solver_type = ceres::DENSE_QR;
  solver.logging_type = ceres::SILENT;
  ceres::Solver::Summary summary;
  ceres::Solve(solver, &problem, &summary);
  Solution solution{logs, standard_errors(problem, logs.data(), logs.size()), summary.final_cost};
  return solution;
}

// The best from the present values and the corners around them.
Solution solve(const Framework& framework, Constants constants, const RowsToFit& rows,
               const std::function<void()>& progress) {
  const std::vector<double> centre = present(framework, constants);
  Solution best;
  const unsigned corners = 1U << constants.size();
  for (unsigned start = 0; start <= corners; ++start) {
    progress();
    std::vector<double> logs = centre;
    for (std::size_t i = 0; start < corners && i < logs.size(); ++i) {
      const FitConstant& constant = constants[i];
      logs[i] += (start >> i & 1U) != 0 ? constant.sd : -constant.sd;
      logs[i] = std::clamp(logs[i], std::log(constant.least), std::log(constant.most));
    }
    Solution found = solve_from(std::move(logs), framework, constants, rows);
    if (found.cost < best.cost) best = std::move(found);
  }
  return best;
}

bool is_told(const FitConstant& constant, double sd, double move) {
  return sd < kToldSd * constant.sd || std::abs(move) > kToldMove * constant.sd;
}

FittedConstant fitted(const FitConstant& constant, double before, double log, double sd) {
  FittedConstant f{.constant = constant, .before = before, .value = std::exp(log), .sd = sd};
  f.at_bound = std::min(log - std::log(constant.least), std::log(constant.most) - log) < kAtBound;
  f.told = is_told(constant, sd, log - std::log(before));
  if (!f.told) f.value = before;
  return f;
}

}  // namespace

FrameworkFit fit_framework(const Framework& framework, Constants constants, const RowsToFit& rows,
                           const std::function<void()>& progress) {
  FrameworkFit fit{{}, framework};
  std::vector<FitConstant> told(constants.begin(), constants.end());
  for (bool all_told = false; !all_told && !told.empty();) {
    const Solution solution = solve(framework, told, rows, progress);
    all_told = true;
    std::vector<FitConstant> still;
    std::vector<FittedConstant> found;
    for (std::size_t i = 0; i < told.size(); ++i) {
      const double before = value_of(told[i], framework);
      const FittedConstant f = fitted(told[i], before, solution.logs[i], solution.sds[i]);
      all_told = all_told && f.told;
      if (f.told) still.push_back(told[i]);
      (f.told ? found : fit.constants).push_back(f);
    }
    if (all_told) fit.constants.insert(fit.constants.begin(), found.begin(), found.end());
    told = std::move(still);
  }
  const auto place = [&](const FittedConstant& f) {
    return std::find_if(constants.begin(), constants.end(),
                        [&](const FitConstant& constant) { return constant.name == f.constant.name; });
  };
  std::sort(fit.constants.begin(), fit.constants.end(),
            [&](const FittedConstant& a, const FittedConstant& b) { return place(a) < place(b); });
  for (const FittedConstant& f : fit.constants) {
    if (f.told) set_value(f.constant, f.value, fit.framework);
  }
  return fit;
}

}  // namespace tbdsim
