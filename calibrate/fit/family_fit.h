// Fits the parameters of one family to samples of one library generation, with Ceres.
//
//   residual = ln( shown(model, floor) / measured ) / sigma,  Cauchy loss (shown: launch_floor.h)
//   unknowns: ln of the parameters (shared by the GPUs), ln of sustained clock and bandwidth of each GPU, ln
//   of a launch floor of each GPU and op whose samples hold one; bounds and log-normal priors on all of them
//
// The minimum over algorithms is taken with doubles, then the chosen one is differentiated (hard minimum).
//
// A formula misses calls of like sizes alike, so that thousands of them tell no more than some hundred would.
// The samples of a GPU are weighted to count as `independent` calls that are off by `misfit`: priors then
// hold what the samples leave open, which no bound has to.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "calibrate/samples/sample.h"
#include "costmodel/hardware.h"

namespace tbdsim {

// Priors of a GPU's sustained shares of its data sheet's rates.
struct GpuPrior {
  Prior clock{.mean = 0.92, .sd = 0.1};
  Prior bandwidth{.mean = 1, .sd = 0.05};
};

struct FitOptions {
  std::map<std::string, GpuPrior> gpus;  // GpuPrior{} where a GPU is missing
  std::vector<Prior> parameters;         // instead of the family's own priors; empty: those
  int starts = 1;                        // further ones are perturbed by N(0, 0.5) in the logarithm
  std::uint32_t seed = 1;
  double loss_scale = 0.12;  // of the Cauchy loss, in ln(time); divided by a sample's sigma
  double misfit = 0.08;      // usual error of a formula, in ln(time)
  double independent = 100;  // calls that tell as much as all those of a GPU; fewer count as they are
  int max_iterations = 400;
  int threads = 1;
};

struct GpuFit {
  AchievedFraction<double> sustained{1, 1};
  std::map<std::string, double> floors;  // s, by op
  int samples = 0;
};

struct FamilyFit {
  std::vector<double> parameters;  // in the order of the family's table
  std::vector<bool> at_bound;
  std::vector<double>
      determined;  // share of each that samples determine: 1 - variance / variance of the prior
  std::map<std::string, GpuFit> gpus;
  double cost = 0;  // robust, at the end
  int iterations = 0;
  bool converged = false;
  std::size_t steepest =
      0;  // the parameter with the largest gradient, which a fit that stopped early still moves
};

template <class Family>
[[nodiscard]] FamilyFit fit_family(std::span<const Sample<Family>> samples, const FitOptions& options);

}  // namespace tbdsim
