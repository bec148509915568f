// The constants of a framework that can be fitted to training runs, by name.
#pragma once

#include <string>
#include <vector>

#include "simulate/framework/framework_spec.h"

namespace tbdsim {

inline constexpr std::size_t kMostFitted = 4;  // of a framework version

// kernel, step, update, wait, iteration, gap: a time of Execution. factors.convolution+gemm: one number for
// the kernels of these kinds. factors.half_convolution: convolutions in half precision on tensor
// cores, beside. factors.on.sm_80: all kernels on GPUs of compute capability 8.0.
struct FitConstant {
  std::string name{};
  Seconds LaunchModel::*time = nullptr;  // none: a factor
  std::vector<KernelKind> kinds{};       // of a factor
  std::string capability{};              // of a factor: "sm_80"
  bool half_convolution = false;         // a factor of those on tensor cores
  double least = 0, most = 0;            // seconds, or a factor
  double sd = 0;                         // of the prior: of ln(value / the framework's present value)
};

// "kernel,wait,factors.convolution+gemm". Throws UsageError for more than four, for none, for unknown ones
// and for what is named twice.
[[nodiscard]] std::vector<FitConstant> parse_fit_constants(const std::string& names);

// In seconds, or the factor (of several kinds the geometric mean), within the bounds. A time that the
// framework does not give is a typical one.
[[nodiscard]] double value_of(const FitConstant& constant, const Framework& framework);
void set_value(const FitConstant& constant, double value, Framework& framework);

}  // namespace tbdsim
