// Advice on communication that a step waits for and that training stacks can run beside kernels.
#pragma once

#include <string>
#include <vector>

#include "simulate/plan/stack.h"
#include "simulate/plan/step_time.h"

namespace tbdsim {

// Share of a step from which on exposed communication of one dimension is worth a word.
inline constexpr double kNoticedExposure = 0.1;

// A sentence for each dimension (tensor, expert) whose exposed communication takes this share of the step or
// more and whose overlap the stack has and does not use: the share and the keys that change it.
[[nodiscard]] std::vector<std::string> overlap_advice(const LayoutPrediction& prediction, const Stack& stack);

}  // namespace tbdsim
