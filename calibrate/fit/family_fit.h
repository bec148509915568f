// Fits the parameters of one family to samples of one library generation, with Ceres.
//
//   residual = ln( shown(model, floor) / measured ) / sigma,  Cauchy loss (shown: launch_floor.h)
//   unknowns: ln of the parameters (shared by the GPUs), ln of sustained clock and bandwidth of each GPU, ln
//   of a launch floor of each GPU and op whose samples hold one; bounds and log-normal priors on all of them
//
// The minimum over algorithms is taken with doubles, then the chosen one is differentiated (hard minimum).
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
  int max_iterations = 40;
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
  std::map<std::string, GpuFit> gpus;
  double cost = 0;  // robust, at the end
  int iterations = 0;
  bool converged = false;
};

template <class Family>
[[nodiscard]] FamilyFit fit_family(std::span<const Sample<Family>> samples, const FitOptions& options);

}  // namespace tbdsim
