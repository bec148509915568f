// An execution trace of PyTorch: the JSON that torch.profiler.ExecutionTraceObserver writes and Chakra reads.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <variant>
#include <vector>

#include "graphs/captured/captured_step.h"

namespace tbdsim {

struct TracedTensor {
  std::int64_t storage = 0;  // its number in the trace; one is used again once its storage is freed
  std::int64_t offset = 0;   // in elements
  Dtype dtype = Dtype::f32;
  bool on_gpu = false;
  std::vector<std::int64_t> shape{}, strides{};  // strides in elements
};

struct TracedValue {
  std::variant<std::monostate, bool, std::int64_t, double, std::string, TracedTensor,
               std::vector<TracedValue>>
      value{};
};

struct TracedOperator {
  std::string
      name;  // as a step file has it, "aten.add_.Tensor"; empty: a parameter takes its gradient, inputs[0]
  StepPhase phase = StepPhase::forward;
  std::vector<TracedValue> inputs{};   // in the order of the operator's schema
  std::vector<TracedValue> outputs{};  // tensors, or nothing
  std::string place{};                 // "FILE: node 12"
};

struct ExecutionTrace {
  std::string file;
  std::vector<TracedOperator> operators;  // in the order in which they began, none inside another
};

// The operators of one training step, each as far out as tbd-sim knows it: a convolution rather than what it
// calls. Throws UsageError for a file that cannot be read or is larger than 256 MiB; SpecError for one that
// is no execution trace or holds other than one step with a backward pass.
[[nodiscard]] ExecutionTrace read_execution_trace(const std::filesystem::path& file);

// A node of the trace that PyTorch runs as one operator under another name than a step file's: its operator,
// and which inputs are that operator's. Returns false for every other node.
[[nodiscard]] bool rename_fused(std::string_view name, TracedOperator& op);

}  // namespace tbdsim
