#include "calibrate/records/stream_ops.h"

#include <algorithm>

namespace tbdsim {
namespace {

constexpr StreamOp kStreamOps[] = {
    {"add", "forward", 2, 1},
    {"mul", "forward", 2, 1},
    {"div", "forward", 2, 1},
    {"pow", "forward", 2, 1},
    {"add_scalar", "forward", 1, 1},
    {"mul_scalar", "forward", 1, 1},
    {"div_scalar", "forward", 1, 1},
    {"pow_scalar", "forward", 1, 1},
    {"relu", "forward", 1, 1},
    {"relu", "backward_data", 2, 1},
    {"gelu", "forward", 1, 1},
    {"tanh", "forward", 1, 1},
    {"dropout", "forward", 1, 1, 1},
    {"dropout", "backward_data", 1, 1, 1},
    {"bias", "forward", 1, 1},
    {"bias", "backward_weights", 1, 0},
    {"softmax", "forward", 1, 1},
    {"softmax", "backward_data", 2, 1},
    {"layer_norm", "forward", 1, 1},
    {"layer_norm", "backward_data", 2, 1},
    {"layer_norm", "backward_weights", 2, 0},
    {"batch_norm", "forward", 2, 1},
    {"batch_norm", "backward_data", 4, 1},
    {"sgd_momentum", "update", 3, 2},
    {"adam", "update", 4, 3},
};

}  // namespace

const StreamOp* find_stream_op(std::string_view op, std::string_view phase) {
  const std::string_view wanted = phase.empty() ? "forward" : phase;
  const auto* found = std::find_if(std::begin(kStreamOps), std::end(kStreamOps), [&](const StreamOp& each) {
    return each.op == op && each.phase == wanted;
  });
  return found == std::end(kStreamOps) ? nullptr : found;
}

}  // namespace tbdsim
