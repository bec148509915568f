#include "calibrate/fit/family_fit.h"

#include <algorithm>
#include <cmath>
#include <random>

#include <Eigen/Cholesky>
#include <Eigen/Core>
#include <ceres/ceres.h>
#include <ceres/jet.h>

#include "calibrate/fit/baselines.h"
#include "calibrate/samples/launch_floor.h"
#include "costmodel/families/families.h"

namespace tbdsim {
namespace {

constexpr Prior kFloorPrior{.mean = 3e-5, .sd = 1.0};
constexpr double kLeastClock = 0.1, kMostClock = 1.3;
constexpr double kLeastBandwidth = 0.2, kMostBandwidth = 2.0;
constexpr double kLeastFloor = 1e-7, kMostFloor = 1e-2;
constexpr double kFirstFloor = 1e-4;  // where no call is short enough to show it
constexpr double kPerturbation = 0.5;

// ln(model / measured) of one sample; blocks: parameters, {clock, bandwidth} of the GPU, floor of GPU and op.
template <class Family>
class Residual final : public ceres::CostFunction {
 public:
  static constexpr int kTheta = static_cast<int>(kParameterCount<Family>);

  explicit Residual(const Sample<Family>& sample) : sample_(sample) {
    set_num_residuals(1);
    mutable_parameter_block_sizes()->push_back(kTheta);
    mutable_parameter_block_sizes()->push_back(2);
    if (sample.floor) mutable_parameter_block_sizes()->push_back(1);
  }

  bool Evaluate(double const* const* x, double* residual, double** jacobians) const override {
    std::array<double, kTheta> p;
    for (std::size_t i = 0; i < p.size(); ++i) p[i] = std::exp(x[0][i]);
    const AchievedFraction<double> sustained{std::exp(x[1][0]), std::exp(x[1][1])};
    const auto best = kernel_time<Family>(sample_.call, sample_.hardware, sustained, p);
    const double floor = sample_.floor ? std::exp(x[2][0]) : 0;
    const double model = sample_.floor ? shown_time(best.parts.total, floor) : best.parts.total;
    residual[0] = std::log(model / sample_.time_s) / sample_.sigma;
    if (jacobians != nullptr) differentiate(p, sustained, best.choice, floor, model, jacobians);
    return std::isfinite(residual[0]);
  }

 private:
  using J = ceres::Jet<double, kTheta + 2>;

  // d ln(model) / d ln(x) = x / model * dmodel/dx.
  void differentiate(const std::array<double, kTheta>& p, const AchievedFraction<double>& sustained,
                     const Choice& choice, double floor, double model, double** jacobians) const {
    std::array<J, kTheta> jets;
    for (std::size_t i = 0; i < jets.size(); ++i) {
      jets[i] = J(p[i], static_cast<int>(i));
      jets[i].v *= p[i];
    }
    AchievedFraction<J> rates{J(sustained.clock, kTheta), J(sustained.bandwidth, kTheta + 1)};
    rates.clock.v *= sustained.clock;
    rates.bandwidth.v *= sustained.bandwidth;
    const J total =
        Family::template time<J>(sample_.call, choice, sample_.hardware, rates, std::span<const J>(jets))
            .total;
    const double per_second = 1 / (model * sample_.sigma);
    const double scale = per_second * (sample_.floor ? shown_slope(total.a) : 1);
    if (jacobians[0] != nullptr) {
      for (int i = 0; i < kTheta; ++i) jacobians[0][i] = total.v[i] * scale;
    }
    if (jacobians[1] != nullptr) {
      jacobians[1][0] = total.v[kTheta] * scale;
      jacobians[1][1] = total.v[kTheta + 1] * scale;
    }
    if (sample_.floor && jacobians[2] != nullptr) jacobians[2][0] = floor * per_second;
  }

  const Sample<Family>& sample_;
};

// The loss of a sample, weighted as one of `count` samples of its GPU.
template <class Family>
ceres::LossFunction* loss_of(const Sample<Family>& s, int count, const FitOptions& options) {
  const double share = s.sigma / std::hypot(s.sigma, options.misfit);
  const double weight = share * share * std::min(1.0, options.independent / count);
  auto* const robust = new ceres::CauchyLoss(options.loss_scale / s.sigma);
  return new ceres::ScaledLoss(robust, weight, ceres::TAKE_OWNERSHIP);
}

// (x - ln mean) / sd of one number of a block.
class PriorResidual final : public ceres::CostFunction {
 public:
  PriorResidual(int size, int index, const Prior& prior, double weight)
      : size_(size), index_(index), mean_(std::log(prior.mean)), scale_(weight / prior.sd) {
    set_num_residuals(1);
    mutable_parameter_block_sizes()->push_back(size);
  }
  bool Evaluate(double const* const* x, double* residual, double** jacobians) const override {
    residual[0] = (x[0][index_] - mean_) * scale_;
    if (jacobians != nullptr && jacobians[0] != nullptr) {
      std::fill_n(jacobians[0], size_, 0.0);
      jacobians[0][index_] = scale_;
    }
    return true;
  }

 private:
  int size_, index_;
  double mean_, scale_;
};

// All unknowns, as logarithms.
struct Unknowns {
  std::vector<double> theta;
  std::map<std::string, std::array<double, 2>> rates;
  std::map<std::pair<std::string, std::string>, double> floors;  // by GPU and op
};

GpuPrior prior_of(const FitOptions& options, const std::string& gpu) {
  const auto found = options.gpus.find(gpu);
  return found == options.gpus.end() ? GpuPrior{} : found->second;
}

template <class Family>
Prior parameter_prior(const FitOptions& options, std::size_t i) {
  if (!options.parameters.empty()) return options.parameters[i];
  return {Family::parameters[i].start, Family::parameters[i].prior};
}

template <class Family>
Unknowns start_of(std::span<const Sample<Family>> samples, const FitOptions& options) {
  Unknowns u;
  for (std::size_t i = 0; i < kParameterCount<Family>; ++i) {
    u.theta.push_back(std::log(parameter_prior<Family>(options, i).mean));
  }
  std::map<std::pair<std::string, std::string>, double> least;
  for (const Sample<Family>& s : samples) {
    const GpuPrior prior = prior_of(options, s.gpu);
    u.rates[s.gpu] = {std::log(prior.clock.mean), std::log(prior.bandwidth.mean)};
    if (!s.floor) continue;
    const auto [it, added] = least.emplace(std::pair{s.gpu, s.op}, s.time_s);
    if (!added) it->second = std::min(it->second, s.time_s);
  }
  for (const auto& [key, time] : least)
    u.floors[key] = std::log(std::clamp(0.9 * time, kLeastFloor, kFirstFloor));
  return u;
}

void bound(ceres::Problem& problem, double* block, int i, double lower, double upper) {
  problem.SetParameterLowerBound(block, i, std::log(lower));
  problem.SetParameterUpperBound(block, i, std::log(upper));
}

template <class Family>
void add_priors(ceres::Problem& problem, Unknowns& u, const FitOptions& options) {
  constexpr int n = static_cast<int>(kParameterCount<Family>);
  std::vector<int> constant;
  for (int i = 0; i < n; ++i) {
    const Prior prior = parameter_prior<Family>(options, static_cast<std::size_t>(i));
    const Parameter& parameter = Family::parameters[static_cast<std::size_t>(i)];
    bound(problem, u.theta.data(), i, parameter.lower, parameter.upper);
    if (prior.sd > 0) {
      problem.AddResidualBlock(new PriorResidual(n, i, prior, 1), nullptr, u.theta.data());
    } else {
      constant.push_back(i);
    }
  }
  if (static_cast<int>(constant.size()) == n) {
    problem.SetParameterBlockConstant(u.theta.data());
  } else if (!constant.empty()) {
    problem.SetManifold(u.theta.data(), new ceres::SubsetManifold(n, constant));
  }
  for (auto& [gpu, rates] : u.rates) {
    const GpuPrior prior = prior_of(options, gpu);
    bound(problem, rates.data(), 0, kLeastClock, kMostClock);
    bound(problem, rates.data(), 1, kLeastBandwidth, kMostBandwidth);
    std::vector<int> held;
    if (prior.clock.sd > 0)
      problem.AddResidualBlock(new PriorResidual(2, 0, prior.clock, 1), nullptr, rates.data());
    else
      held.push_back(0);
    if (prior.bandwidth.sd > 0)
      problem.AddResidualBlock(new PriorResidual(2, 1, prior.bandwidth, 1), nullptr, rates.data());
    else
      held.push_back(1);
    if (held.size() == 2)
      problem.SetParameterBlockConstant(rates.data());
    else if (!held.empty())
      problem.SetManifold(rates.data(), new ceres::SubsetManifold(2, held));
  }
  for (auto& [key, floor] : u.floors) {
    bound(problem, &floor, 0, kLeastFloor, kMostFloor);
    problem.AddResidualBlock(new PriorResidual(1, 0, kFloorPrior, 1), nullptr, &floor);
  }
}

struct Solution {
  ceres::Solver::Summary summary;
  std::vector<double> determined;  // as FamilyFit's
  std::size_t steepest = 0;        // as FamilyFit's
};

// Sets what the curvature of a solved problem says of its parameters: the variances of the posterior are the
// diagonal of the inverse of J^T J.
template <class Family>
void judge_parameters(ceres::Problem& problem, Unknowns& u, const FitOptions& options, Solution& solution) {
  constexpr std::size_t n = kParameterCount<Family>;
  solution.determined.assign(n, 0);
  if (problem.IsParameterBlockConstant(u.theta.data())) return;
  ceres::Problem::EvaluateOptions every;
  every.parameter_blocks.push_back(u.theta.data());  // first: their columns are the first ones
  for (auto& [gpu, rates] : u.rates) {
    if (!problem.IsParameterBlockConstant(rates.data())) every.parameter_blocks.push_back(rates.data());
  }
  for (auto& [key, floor] : u.floors) every.parameter_blocks.push_back(&floor);
  std::vector<double> gradient;
  ceres::CRSMatrix jacobian;
  if (!problem.Evaluate(every, nullptr, nullptr, &gradient, &jacobian)) return;
  Eigen::MatrixXd curvature = Eigen::MatrixXd::Zero(jacobian.num_cols, jacobian.num_cols);
  const auto at = [](int i) { return static_cast<std::size_t>(i); };
  for (int row = 0; row < jacobian.num_rows; ++row) {
    const int first = jacobian.rows[at(row)], end = jacobian.rows[at(row + 1)];
    for (int a = first; a < end; ++a) {
      for (int b = first; b < end; ++b)
        curvature(jacobian.cols[at(a)], jacobian.cols[at(b)]) +=
            jacobian.values[at(a)] * jacobian.values[at(b)];
    }
  }
  const Eigen::MatrixXd variance =
      curvature.ldlt().solve(Eigen::MatrixXd::Identity(jacobian.num_cols, jacobian.num_cols));
  double steepest = 0;
  int column = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const double sd = parameter_prior<Family>(options, i).sd;
    if (sd == 0) continue;  // held, without a column
    solution.determined[i] = std::clamp(1 - variance(column, column) / (sd * sd), 0.0, 1.0);
    const double slope = std::abs(gradient[static_cast<std::size_t>(column)]);
    if (slope > steepest) {
      steepest = slope;
      solution.steepest = i;
    }
    ++column;
  }
}

template <class Family>
Solution solve(std::span<const Sample<Family>> samples, const FitOptions& options, Unknowns& u) {
  std::map<std::string, int> counts;
  for (const Sample<Family>& s : samples) ++counts[s.gpu];
  ceres::Problem problem;
  problem.AddParameterBlock(u.theta.data(), static_cast<int>(u.theta.size()));
  for (auto& [gpu, rates] : u.rates) problem.AddParameterBlock(rates.data(), 2);
  for (auto& [key, floor] : u.floors) problem.AddParameterBlock(&floor, 1);
  for (const Sample<Family>& s : samples) {
    auto* loss = loss_of(s, counts.at(s.gpu), options);
    auto* residual = new Residual<Family>(s);
    double* rates = u.rates.at(s.gpu).data();
    if (s.floor)
      problem.AddResidualBlock(residual, loss, u.theta.data(), rates, &u.floors.at({s.gpu, s.op}));
    else
      problem.AddResidualBlock(residual, loss, u.theta.data(), rates);
  }
  add_priors<Family>(problem, u, options);
  ceres::Solver::Options solver;
  solver.linear_solver_type = ceres::DENSE_NORMAL_CHOLESKY;
  solver.max_num_iterations = options.max_iterations;
  solver.num_threads = options.threads;
  solver.logging_type = ceres::SILENT;
  solver.function_tolerance = 1e-5;
  Solution solution;
  ceres::Solve(solver, &problem, &solution.summary);
  judge_parameters<Family>(problem, u, options, solution);
  return solution;
}

template <class Family>
FamilyFit result_of(std::span<const Sample<Family>> samples, const Unknowns& u, const Solution& solution) {
  const ceres::Solver::Summary& summary = solution.summary;
  FamilyFit fit;
  fit.determined = solution.determined;
  fit.steepest = solution.steepest;
  for (std::size_t i = 0; i < u.theta.size(); ++i) {
    const Parameter& parameter = Family::parameters[i];
    fit.parameters.push_back(std::exp(u.theta[i]));
    fit.at_bound.push_back(std::abs(u.theta[i] - std::log(parameter.lower)) < 1e-6 ||
                           std::abs(u.theta[i] - std::log(parameter.upper)) < 1e-6);
  }
  for (const auto& [gpu, rates] : u.rates) fit.gpus[gpu].sustained = {std::exp(rates[0]), std::exp(rates[1])};
  for (const auto& [key, floor] : u.floors) fit.gpus[key.first].floors[key.second] = std::exp(floor);
  for (const Sample<Family>& s : samples) ++fit.gpus[s.gpu].samples;
  fit.cost = summary.final_cost;
  fit.iterations = static_cast<int>(summary.iterations.size());
  fit.converged = summary.termination_type == ceres::CONVERGENCE;
  return fit;
}

}  // namespace

template <class Family>
FamilyFit fit_family(std::span<const Sample<Family>> samples, const FitOptions& options) {
  std::mt19937 random(options.seed);
  std::normal_distribution<double> perturbation(0, kPerturbation);
  FamilyFit best;
  for (int start = 0; start < std::max(1, options.starts); ++start) {
    Unknowns u = start_of(samples, options);
    for (std::size_t i = 0; i < u.theta.size(); ++i) {
      const Parameter& parameter = Family::parameters[i];
      if (start > 0 && parameter_prior<Family>(options, i).sd > 0) u.theta[i] += perturbation(random);
      u.theta[i] = std::clamp(u.theta[i], std::log(parameter.lower) + 1e-3, std::log(parameter.upper) - 1e-3);
    }
    const Solution solution = solve(samples, options, u);
    if (start == 0 || solution.summary.final_cost < best.cost) best = result_of(samples, u, solution);
  }
  return best;
}

#define TBDSIM_INSTANTIATE(Family)                                                                     \
  template FamilyFit fit_family<Family>(std::span<const Sample<Family>>, const FitOptions&);           \
  template FamilyFit fit_family<ConstantShare<Family>>(std::span<const Sample<ConstantShare<Family>>>, \
                                                       const FitOptions&);                             \
  template FamilyFit fit_family<PlainRoofline<Family>>(std::span<const Sample<PlainRoofline<Family>>>, \
                                                       const FitOptions&);
TBDSIM_FOR_EACH_FAMILY(TBDSIM_INSTANTIATE)
#undef TBDSIM_INSTANTIATE

}  // namespace tbdsim
