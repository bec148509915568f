// Operators of a PyTorch profiler's trace whose shapes it recorded, with the kernels that they launched.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace tbdsim {

// Kernels of several calls.
struct ShapedKernels {
  std::vector<double> seconds{};  // of each call, all its kernels together
  std::string longest{};          // name of the longest of the first call
  std::int64_t count = 0;         // in the first call
};

// All calls of one operator with inputs of the same shapes, strides and types.
struct ShapedCalls {
  std::string op;  // "aten::mm"
  std::vector<std::vector<std::int64_t>> shapes{},
      strides{};                      // of each input; strides: empty before PyTorch 2.1
  std::vector<std::string> types{};   // "float", "c10::Half"
  std::vector<std::string> values{};  // of inputs that are no tensors, "[1, 1]"; empty before PyTorch 2.1
  ShapedKernels kernels{};
  // Kernels whose names tell the gradient that they compute: "dgrad", of the data, and "wgrad", of the
  // weights.
  ShapedKernels data_gradient{}, weight_gradient{};
};

struct ShapedTrace {
  std::string gpu;                  // as the profiler names it, or empty
  int cuda = 0;                     // major version of the runtime; 0: unknown
  std::vector<ShapedCalls> calls;   // in the order in which they are first met
  std::int64_t without_shapes = 0;  // kernels of operators whose shapes are not there
};

// Throws as read_chrome_trace, and SpecError for a trace without kernels of an operator with shapes.
[[nodiscard]] ShapedTrace read_shaped_trace(const std::filesystem::path& file);

}  // namespace tbdsim
