#include "calibrate/framework_fit/constants.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <sstream>

#include <fmt/format.h>

#include "hwspecs/base/error.h"
#include "hwspecs/base/suggest.h"

namespace tbdsim {
namespace {

constexpr double kLeastTime = 1e-7, kMostTime = 1e-2, kMostIteration = 1e-1;
constexpr double kLeastFactor = 0.5, kMostFactor = 2;
// Prior standard deviations of ln(value). Estimates: times are known to about a factor of e; kernel times
// were fitted to measured ones; DeepBench timed half-precision convolutions in NCHW on two GPUs with tensor
// cores, while frameworks convolve in NHWC or transpose.
constexpr double kTimeSd = 1;
constexpr double kFactorSd = 0.15;
constexpr double kHalfSd = 0.4;
constexpr std::string_view kFactors = "factors.";
constexpr std::string_view kOn = "on.";

struct Time {
  std::string_view name;
  Seconds LaunchModel::*member;
  double most;
  double typical;  // seconds; an estimate, where a framework gives none
};
constexpr Time kTimes[] = {{"kernel", &LaunchModel::launch_overhead, kMostTime, 1e-5},
                           {"step", &LaunchModel::loop_step_overhead, kMostTime, 1e-5},
                           {"update", &LaunchModel::update_overhead, kMostTime, 1e-5},
                           {"wait", &LaunchModel::sync_overhead, kMostTime, 3e-5},
                           {"iteration", &LaunchModel::iteration_overhead, kMostIteration, 1e-3},
                           {"gap", &LaunchModel::kernel_gap, kMostTime, 1e-6}};

std::vector<std::string> parts(const std::string& text, char separator) {
  std::vector<std::string> found;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, separator);) found.push_back(part);
  return found;
}

KernelKind kind_of(const std::string& name) {
  const auto found = std::find(kKernelKindNames.begin(), kKernelKindNames.end(), name);
  if (found != kKernelKindNames.end()) return static_cast<KernelKind>(found - kKernelKindNames.begin());
  const std::vector<std::string> known(kKernelKindNames.begin(), kKernelKindNames.end());
  throw UsageError(fmt::format("--constants: unknown kernel kind {}; expected one of {}{}", in_quotes(name),
                               joined(known), did_you_mean(name, known)));
}

FitConstant factor_of(const std::string& name) {
  FitConstant factor{.name = name, .least = kLeastFactor, .most = kMostFactor, .sd = kFactorSd};
  const std::string of = name.substr(kFactors.size());
  if (of.starts_with(kOn)) {
    factor.capability = of.substr(kOn.size());
    if (is_capability(factor.capability)) return factor;
    throw UsageError(fmt::format("--constants: {} is no compute capability; expected one as sm_80",
                                 in_quotes(factor.capability)));
  }
  if (of == kHalfConvolution) {
    factor.half_convolution = true;
    factor.sd = kHalfSd;
    return factor;
  }
  for (const std::string& kind : parts(of, '+')) {
    factor.kinds.push_back(kind_of(kind));
  }
  if (factor.kinds.empty()) throw UsageError("--constants: 'factors.' names no kernel kind");
  return factor;
}

FitConstant constant_of(const std::string& name) {
  if (name.starts_with(kFactors)) return factor_of(name);
  std::vector<std::string> known;
  for (const Time& time : kTimes) {
    if (time.name == name) {
      return {.name = name, .time = time.member, .least = kLeastTime, .most = time.most, .sd = kTimeSd};
    }
    known.emplace_back(time.name);
  }
  throw UsageError(fmt::format(
      "--constants: unknown constant {}; expected {}, factors.KIND, factors.{} or factors.on.sm_80{}",
      in_quotes(name), joined(known), kHalfConvolution, did_you_mean(name, known)));
}

void require_once(const FitConstant& constant, std::set<std::string>& named) {
  const auto require_new = [&](const std::string& name) {
    if (!named.insert(name).second) throw UsageError("--constants: " + name + " is named twice");
  };
  if (constant.kinds.empty()) require_new(constant.name);
  for (const KernelKind kind : constant.kinds)
    require_new(std::string(kFactors) + std::string(name_of(kind)));
}

}  // namespace

std::vector<FitConstant> parse_fit_constants(const std::string& names) {
  std::vector<FitConstant> constants;
  std::set<std::string> named;
  for (const std::string& name : parts(names, ',')) {
    constants.push_back(constant_of(name));
    require_once(constants.back(), named);
  }
  if (constants.empty()) {
    throw UsageError("--constants: none named; expected some, as kernel,wait,factors.convolution+gemm");
  }
  if (constants.size() > kMostFitted) {
    throw UsageError(
        fmt::format("--constants: {} named; at most {} may be fitted for a version of a framework",
                    constants.size(), kMostFitted));
  }
  return constants;
}

double value_of(const FitConstant& constant, const Framework& framework) {
  double value = 1;
  if (constant.time != nullptr) {
    value = (framework.launch_model.*constant.time).si();
    for (const Time& time : kTimes) {
      if (time.name == constant.name && value == 0) value = time.typical;
    }
  } else if (!constant.capability.empty()) {
    const auto on = framework.factors_on.find(constant.capability);
    if (on != framework.factors_on.end()) value = on->second;
  } else if (constant.half_convolution) {
    value = framework.half_convolution;
  } else {
    double logs = 0;
    for (const KernelKind kind : constant.kinds) logs += std::log(framework.factors[index_of(kind)]);
    value = std::exp(logs / static_cast<double>(constant.kinds.size()));
  }
  return std::clamp(value, constant.least, constant.most);
}

void set_value(const FitConstant& constant, double value, Framework& framework) {
  if (constant.time != nullptr) framework.launch_model.*constant.time = Seconds(value);
  if (!constant.capability.empty()) framework.factors_on[constant.capability] = value;
  if (constant.half_convolution) framework.half_convolution = value;
  for (const KernelKind kind : constant.kinds) framework.factors[index_of(kind)] = value;
}

}  // namespace tbdsim
