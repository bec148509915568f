// Errors of a kernel family on calls that it was not fitted to, by protocol of what is left out.
//
//   shapes         a fifth of the shapes is held out on every GPU (all phases of a shape together); each GPU
//                  has parameters of its own, with the generation's as prior
//   gpu            a GPU is held out; its clock is the data sheet's expected_clock
//   gpu_one_gemm   the same; its clock is from one measured large matrix product of its own
//   largest_batch  the largest batch of each layer is held out, on each GPU
//
// Each outcome holds the formula alone, the formula with residuals of the calls nearby (of the same GPU, or
// of the other GPUs where one is held out), and two simpler models fitted to the same folds.
//
// The clock of a fitted GPU has a prior (deviation 0.05) from its large GEMMs, some of which may be held out.
// Under gpu_one_gemm the GEMM that sets the clock is among the calls that are judged.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "calibrate/fit/clock_priors.h"
#include "calibrate/samples/sample.h"

namespace tbdsim {

enum class Protocol { shapes, gpu, gpu_one_gemm, largest_batch };
inline constexpr std::array<std::string_view, 4> kProtocolNames = {"shapes", "gpu", "gpu_one_gemm",
                                                                   "largest_batch"};

struct Outcome {
  std::string_view family;
  Protocol protocol = Protocol::shapes;
  std::string block, gpu, phase, set;
  int fold = 0;         // what was held out together
  double measured = 0;  // s
  double formula = 0;   // s; a launch floor that `measured` holds is added to every prediction
  double residual = 0;  // s: the formula with residuals of calls nearby
  double sd = 0;        // of ln(residual)
  double constant = 0;  // s: ConstantShare
  double roofline = 0;  // s: PlainRoofline
  bool inside = false;  // the 80 % interval, with a width fitted to the other folds, holds `measured`
};

struct CrossvalOptions {
  ClockPriors clocks;
  int folds = 5;
  int starts = 1;
  int threads = 1;  // of one fit; folds also run concurrently
  bool baselines = true;
  std::function<void(std::string_view)> progress;  // called before each fit
};

template <class Family>
[[nodiscard]] std::vector<Outcome> cross_validate(std::span<const Sample<Family>> samples, Protocol protocol,
                                                  const CrossvalOptions& options);

// Errors of a group of outcomes.
struct ErrorSummary {
  int count = 0;
  double geometric = 0;  // exp(mean |ln(predicted / measured)|) - 1
  double median = 0;     // of |predicted / measured - 1|
  double p90 = 0;
  double bias = 0;  // exp(mean ln(predicted / measured)) - 1
};
[[nodiscard]] ErrorSummary summarize(std::span<const Outcome> outcomes, double Outcome::*predicted);

}  // namespace tbdsim
