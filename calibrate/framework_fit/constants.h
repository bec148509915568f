// The constants of a framework that can be fitted to training runs, by name.
#pragma once

#include <string>
#include <vector>

#include "simulate/framework/framework_spec.h"

namespace tbdsim {

inline constexpr std::size_t kMostFitted = 4;  // of a framework version

// One constant. Names:
//
//   kernel, step, update, wait, iteration, gap   a time of the LaunchModel, by its key in the framework's file
//   factors.convolution+gemm                     one factor for the kernels of these kinds
//   factors.half_convolution                     a further factor for convolutions in half precision on tensor
//                                                cores
//   factors.on.sm_80                             a further factor for all kernels on GPUs of compute capability
//                                                8.0
struct FitConstant {
  std::string name{};
  Seconds LaunchModel::*time = nullptr;  // none: a factor
  std::vector<KernelKind> kinds{};       // of a factor
  std::string capability{};              // of a factor: "sm_80"
  bool half_convolution = false;         // a factor for convolutions in half precision on tensor cores
  double least = 0, most = 0;            // bounds: seconds, or a factor
  double sd = 0;                         // prior standard deviation of ln(value / present value)
};

// Parses "kernel,wait,factors.convolution+gemm". Throws UsageError for more than four constants, for none,
// for an unknown one and for one that is named twice.
[[nodiscard]] std::vector<FitConstant> parse_fit_constants(const std::string& names);

// The constant's value in a framework, clamped to its bounds: seconds, or a factor (for several kinds the
// geometric mean). For a time that the framework does not give, a typical one.
[[nodiscard]] double value_of(const FitConstant& constant, const Framework& framework);
void set_value(const FitConstant& constant, double value, Framework& framework);

}  // namespace tbdsim
