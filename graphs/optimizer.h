// What an optimizer keeps and moves for each parameter. All state and arithmetic is fp32.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace tbdsim {

struct Optimizer {
  std::string_view name;
  std::int64_t state_words;  // words kept for each parameter beside the parameter and its gradient
  std::int64_t flops;        // for each parameter
  std::string_view rule;
};

// "none" is for benchmarks that time forward and backward only.
inline constexpr std::array<Optimizer, 5> kOptimizers = {{
    {"none", 0, 0, "no update"},
    {"sgd", 0, 2, "w -= lr g"},
    {"momentum", 1, 4, "v = mu v + g; w -= lr v"},
    {"nesterov", 1, 6, "v = mu v + g; w -= lr (g + mu v)"},
    {"adam", 2, 11, "m = b1 m + (1-b1) g; v = b2 v + (1-b2) g^2; w -= lr m / (sqrt v + eps)"},
}};

}  // namespace tbdsim
