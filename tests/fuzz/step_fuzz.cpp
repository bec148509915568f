// Reads a step file and lowers it under two frameworks.
#include "graphs/captured/lower.h"
#include "graphs/captured/step_reader.h"
#include "tests/fuzz/memory_file.h"

namespace {
using namespace tbdsim;

void check(const TrainingStep& step) {
  constexpr double kBatch = 3;
  const int kernels = static_cast<int>(step.kernels.size());
  for (const Kernel& kernel : step.kernels) {
    fuzz::require(kernel.layer >= -1 && kernel.layer < static_cast<int>(step.layers.size()));
    (void)shape_text(kernel, kBatch);
  }
  for (const Tensor& tensor : step.tensors) {
    fuzz::require(0 <= tensor.first_use && tensor.first_use <= tensor.last_use && tensor.last_use < kernels);
  }
  for (const ParameterGradient& gradient : step.gradients)
    fuzz::require(gradient.ready >= 0 && gradient.ready < kernels);
}
}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr Lowering kFirst = {.tensor_core_layout = Layout::nhwc,
                               .update = UpdateKernels::for_loop,
                               .attention = AttentionKernels::math,
                               .product_bias = Composition::composite,
                               .zero_gradients = true};
  const fuzz::MemoryFile file(data, size);
  return fuzz::run([&] {
    const CapturedStep step = read_step_file(file.path());
    check(lower_captured_step(step, Lowering{}, kPrecisions.front()));
    check(lower_captured_step(step, kFirst, kPrecisions.back()));
  });
}
