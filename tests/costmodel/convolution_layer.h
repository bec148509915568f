// A convolution, a card and the choices of its algorithms, for the tests of convolutions.
#pragma once

#include <vector>

#include "costmodel/families/convolution.h"

namespace tbdsim::test {

inline constexpr Hardware kCard{.sm_count = 30, .peak = 12e12, .bandwidth = 500e9, .clock = 1.6e9};
inline constexpr Choice kImplicit{Algorithm::implicit_gemm, 128, 64, 1};

[[nodiscard]] inline std::vector<double> start_values() {
  std::vector<double> values;
  for (const Parameter& parameter : ConvFamily::parameters) values.push_back(parameter.start);
  return values;
}

// 8 images of 64 x 28 x 28, 96 filters of 3 x 3 that keep the size.
[[nodiscard]] inline ConvCall layer(Phase phase) {
  return {.phase = phase,
          .images = 8,
          .channels = 64,
          .height = 28,
          .width = 28,
          .filters = 96,
          .out_height = 28,
          .out_width = 28,
          .kernel_height = 3,
          .kernel_width = 3,
          .pad_height = 1,
          .pad_width = 1,
          .limits = {}};
}

// The same with a stride of 2 and 1 x 1 filters.
[[nodiscard]] inline ConvCall strided(Phase phase) {
  ConvCall call = layer(phase);
  call.out_height = call.out_width = 14;
  call.kernel_height = call.kernel_width = 1;
  call.stride_height = call.stride_width = 2;
  call.pad_height = call.pad_width = 0;
  return call;
}

[[nodiscard]] inline std::vector<Choice> choices(const ConvCall& call, const Hardware& hardware = kCard) {
  std::vector<Choice> all;
  ConvFamily::for_each_choice(call, hardware, [&](const Choice& choice) { all.push_back(choice); });
  return all;
}

[[nodiscard]] inline Estimate<ConvFamily> fastest(const ConvCall& call, const Hardware& hardware = kCard) {
  return kernel_time<ConvFamily>(call, hardware, {0.9, 1}, start_values());
}

[[nodiscard]] inline double seconds(const ConvCall& call, const Choice& choice, const Hardware& hardware,
                                    const AchievedFraction<double>& sustained) {
  const auto p = start_values();
  return ConvFamily::time<double>(call, choice, hardware, sustained, p).total;
}

}  // namespace tbdsim::test
