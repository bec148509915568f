// Optimizers written as tensor operators: the element-wise kernels of one update in the order they run.
//
// Source: torch/optim/sgd.py and adam.py (PyTorch 1.0 to 1.13), without weight decay but where the name says
// it, and adamw.py.
// _multi_tensor_sgd and _multi_tensor_adam of PyTorch 2.1 read and write as much in as many operators.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "graphs/optimizer.h"

namespace tbdsim {

// One operator. Its result may be a new tensor, which lives until the update ends.
struct OptimizerOperator {
  std::string_view name;
  std::int64_t reads = 0;  // 4 B words for each parameter, operands read twice counted once
  std::int64_t flops = 0;  // for each parameter
  bool new_tensor = false;
  bool reads_gradient = false;  // one of the words read is the gradient's
  std::int64_t writes = 1;      // words for each parameter; 0: a sum
};

inline constexpr std::array<OptimizerOperator, 1> kSgdOperators = {{
    {"add", 2, 2, false, true},  // w -= lr g
}};
inline constexpr std::array<OptimizerOperator, 3> kMomentumOperators = {{
    {"mul", 1, 1},               // v *= mu
    {"add", 2, 1, false, true},  // v += g
    {"add", 2, 2},               // w -= lr v
}};
inline constexpr std::array<OptimizerOperator, 4> kMomentumDecayOperators = {{
    {"add", 2, 2, true, true},  // g' = g + decay w
    {"mul", 1, 1},              // v *= mu
    {"add", 2, 1},              // v += g'
    {"add", 2, 2},              // w -= lr v
}};
inline constexpr std::array<OptimizerOperator, 4> kNesterovOperators = {{
    {"mul", 1, 1},               // v *= mu
    {"add", 2, 1, false, true},  // v += g
    {"add", 2, 2, true, true},   // d = g + mu v
    {"add", 2, 2},               // w -= lr d
}};
inline constexpr std::array<OptimizerOperator, 7> kAdamOperators = {{
    {"mul", 1, 1},                   // m *= b1
    {"add", 2, 2, false, true},      // m += (1 - b1) g
    {"mul", 1, 1},                   // v *= b2
    {"addcmul", 2, 3, false, true},  // v += (1 - b2) g g
    {"sqrt", 1, 1, true},            // d = sqrt v
    {"add", 1, 1},                   // d += eps
    {"addcdiv", 3, 3},               // w -= lr m / d
}};

// torch/optim/adamw.py of PyTorch 1.4: w *= 1 - lr decay, then as Adam.
inline constexpr auto kAdamwOperators = [] {
  std::array<OptimizerOperator, kAdamOperators.size() + 1> all{{{"mul", 1, 1}}};
  std::copy(kAdamOperators.begin(), kAdamOperators.end(), all.begin() + 1);
  return all;
}();

// torch/optim/rmsprop.py, neither centred nor with weight decay, but with momentum.
inline constexpr std::array<OptimizerOperator, 7> kRmspropOperators = {{
    {"mul", 1, 1},                   // s *= a
    {"addcmul", 2, 3, false, true},  // s += (1 - a) g g
    {"sqrt", 1, 1, true},            // d = sqrt s
    {"add", 1, 1},                   // d += eps
    {"mul", 1, 1},                   // v *= mu
    {"addcdiv", 3, 2, false, true},  // v += g / d
    {"add", 2, 2},                   // w -= lr v
}};

// torch/optim/adagrad.py, _single_tensor_adagrad without decay.
inline constexpr std::array<OptimizerOperator, 4> kAdagradOperators = {{
    {"addcmul", 2, 3, false, true},  // s += g g
    {"sqrt", 1, 1, true},            // d = sqrt s
    {"add", 1, 1},                   // d += eps
    {"addcdiv", 3, 3, false, true},  // w -= lr g / d
}};

// transformers/optimization.py Adafactor: g * g + eps, its means along both dimensions, 1 / sqrt of their
// product times g, that over its own norm, times the learning rate, which follows the weights' norm.
inline constexpr std::array<OptimizerOperator, 9> kAdafactorOperators = {{
    {"norm", 1, 2, false, false, 0},
    {"square", 1, 2, true, true},
    {"mean", 1, 1, false, false, 0},
    {"mean", 1, 1, false, false, 0},
    {"rsqrt_outer", 0, 1, true},
    {"mul", 2, 1, false, true},
    {"norm", 1, 2, false, false, 0},
    {"scale", 1, 2},
    {"add", 2, 1},
}};

// The operators of an optimizer; empty for those that have kernels of their own.
[[nodiscard]] constexpr std::span<const OptimizerOperator> operators_of(const Optimizer& optimizer) {
  if (optimizer.name == "sgd") return kSgdOperators;
  if (optimizer.name == "momentum") return kMomentumOperators;
  if (optimizer.name == "momentum_decay") return kMomentumDecayOperators;
  if (optimizer.name == "nesterov") return kNesterovOperators;
  if (optimizer.name == "adam") return kAdamOperators;
  if (optimizer.name == "adamw") return kAdamwOperators;
  if (optimizer.name == "rmsprop") return kRmspropOperators;
  if (optimizer.name == "adagrad") return kAdagradOperators;
  if (optimizer.name == "adafactor") return kAdafactorOperators;
  return {};
}

}  // namespace tbdsim
