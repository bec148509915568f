// Storages of a captured step by the parameter and the module that they belong to, and those that lead to a
// parameter's gradient.
#pragma once

#include <vector>

#include "graphs/captured/captured_step.h"

namespace tbdsim {

// For each storage the module (an index) of the parameter, gradient, state or buffer that it holds, by the
// longest path that its name begins with; -1 for storages without a name.
[[nodiscard]] std::vector<int> module_of_storages(const CapturedStep& step);

// Numbers in each storage, of the type of the first tensor in it.
[[nodiscard]] std::vector<Size> elements_of_storages(const CapturedStep& step);

// By storage, whether a batch norm keeps its moving statistics in it.
[[nodiscard]] std::vector<bool> moving_statistics(const CapturedStep& step);

// For each operator whether it makes a gradient of a parameter, or what becomes one by casts, views and sums
// alone.
[[nodiscard]] std::vector<bool> makes_parameter_gradient(const CapturedStep& step);

// A trained parameter with its gradient, both indices of storages.
struct TrainedParameter {
  int parameter = 0;
  int gradient = 0;
  Size elements;
  int last_operator = -1;  // of the backward pass that writes the gradient
};

// In the order in which the step has the gradients.
[[nodiscard]] std::vector<TrainedParameter> trained_parameters(const CapturedStep& step);

}  // namespace tbdsim
