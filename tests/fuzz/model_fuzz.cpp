// Reads a model, builds every variant and expands its training step in two lowerings.
#include "graphs/training_step.h"
#include "tests/fuzz/memory_file.h"

namespace {
using namespace tbdsim;

void check(const TrainingStep& step) {
  constexpr double kBatch = 3;
  for (const Kernel& kernel : step.kernels) {
    fuzz::require(kernel.flops.at(kBatch) >= 0 && kernel.read_bytes.at(kBatch) >= 0);
    fuzz::require(kernel.written_bytes.at(kBatch) >= 0 && kernel.scratch_bytes.at(kBatch) >= 0);
    fuzz::require(kernel.repeat >= 1 && kernel.layer < static_cast<int>(step.layers.size()));
    (void)shape_text(kernel, kBatch);
  }
  for (const Tensor& tensor : step.tensors) {
    fuzz::require(tensor.bytes.at(kBatch) >= 0 && 0 <= tensor.first_use &&
                  tensor.first_use <= tensor.last_use);
  }
}
}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr Lowering kTensorFlow = {.layout = Layout::nhwc,
                                    .conv_1x1 = Conv1x1::gemm,
                                    .relu_keeps = ReluKeeps::input_and_output,
                                    .relu_in_place = true,
                                    .weight_gradients = GradientStorage::transient,
                                    .update = UpdateKernels::fused,
                                    .parameter_copies = 2};
  const fuzz::MemoryFile file(data, size);
  return fuzz::run([&] {
    constexpr std::size_t kEnoughLayers = 20'000;  // the largest model of one variant takes seconds
    std::size_t layers = 0;
    const ModelFile model_file = read_model_file(file.path());
    for (const Variant& variant : model_file.variants) {
      const Model model = build_model(model_file, variant);
      const TrainingStep step = expand_training_step(model, Lowering{}, kPrecisions.front());
      check(step);
      check(expand_training_step(model, kTensorFlow, kPrecisions.back()));
      layers += step.layers.size();
      if (layers > kEnoughLayers) break;
    }
  });
}
