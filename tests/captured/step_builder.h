// Small captured steps, written operator by operator.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "graphs/captured/lower.h"

namespace tbdsim::test {

inline Size growing(std::int64_t per_sample) { return {0, per_sample}; }

inline Argument whole(std::int64_t number) { return {Size{number, 0}}; }
inline Argument flag(bool value) { return {value}; }
inline Argument none() { return {std::monostate{}}; }
inline Argument ref(int tensor) { return {TensorRef{tensor}}; }
inline Argument list(std::vector<Argument> items) { return {std::move(items)}; }
inline Argument pair(std::int64_t a, std::int64_t b) { return list({whole(a), whole(b)}); }

class StepBuilder {
 public:
  CapturedStep step;

  StepBuilder() {
    step.file = "test.step.json";
    step.name = "test";
    step.sample = "image";
    step.modules = {{"", "Net"}, {"a", "Part"}, {"a.b", "Part"}};
  }

  // A contiguous tensor in a storage of its own; returns its index.
  int tensor(std::vector<Size> shape, Dtype dtype = Dtype::f32, StorageRole role = StorageRole::activation,
             std::string name = "") {
    std::vector<Size> strides(shape.size());
    Size elements = fixed_size(1);
    for (std::size_t i = shape.size(); i-- > 0;) {
      strides[i] = elements;
      elements = elements.per_sample == 0 ? shape[i] * elements.fixed : elements * shape[i].fixed;
    }
    step.storages.push_back({.role = role, .bytes = elements * bytes_of(dtype), .name = std::move(name)});
    step.tensors.push_back({.storage = static_cast<int>(step.storages.size()) - 1,
                            .dtype = dtype,
                            .shape = std::move(shape),
                            .strides = std::move(strides),
                            .offset = {},
                            .elements = elements,
                            .stored = elements});
    return static_cast<int>(step.tensors.size()) - 1;
  }

  // A view of a matrix with its dimensions exchanged.
  int transposed(int matrix) {
    CapturedTensor view = step.tensors[static_cast<std::size_t>(matrix)];
    std::swap(view.shape[0], view.shape[1]);
    std::swap(view.strides[0], view.strides[1]);
    step.tensors.push_back(view);
    return static_cast<int>(step.tensors.size()) - 1;
  }

  CapturedStorage& storage_of(int tensor) {
    return step.storages[static_cast<std::size_t>(step.tensors[static_cast<std::size_t>(tensor)].storage)];
  }

  StepBuilder& add(std::string name, std::vector<Argument> arguments, std::vector<int> outputs,
                   StepPhase phase = StepPhase::forward, int module = 0) {
    step.operators.push_back({std::move(name), phase, module, std::move(arguments), std::move(outputs)});
    return *this;
  }

  [[nodiscard]] TrainingStep lowered(const Lowering& lowering = {},
                                     const Precision& precision = kPrecisions[0]) const {
    return lower_captured_step(step, lowering, precision);
  }
};

}  // namespace tbdsim::test
