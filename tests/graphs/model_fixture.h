// Models written down in a test.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "graphs/training_step.h"
#include "tests/support/temp_dir.h"

namespace tbdsim::test {

// The model of a YAML text, in its first variant or the one named.
[[nodiscard]] inline Model model_from(const std::string& yaml, const std::string& variant = "") {
  const TempDir directory;
  const ModelFile file = read_model_file(directory.write("model.yaml", yaml));
  return build_model(file, find_variant(file, variant, ""));
}

// The text after the last "name: " of a list of layers: the name of its last one.
[[nodiscard]] inline std::string last_name(const std::string& layers) {
  const std::size_t begin = layers.rfind("name: ");
  if (begin == std::string::npos) return "";
  return layers.substr(begin + 6, layers.find_first_of(",}", begin) - begin - 6);
}

// One graph with the input `data` and these layers, trained forward, backward and updated in every iteration.
[[nodiscard]] inline std::string model_text(const std::string& data, const std::string& layers,
                                            const std::string& optimizer = "sgd",
                                            const std::string& training = "[{graph: main}]") {
  return "title: A model\nsample: image\nvariants:\n"
         "  v1: {description: for a test, source: a test, optimizer: " +
         optimizer +
         "}\n"
         "graphs:\n  main:\n    inputs: {data: " +
         data + "}\n    outputs: [" + last_name(layers) + "]\n    layers:\n" + layers +
         "training: " + training + "\n";
}

[[nodiscard]] inline Model small_model(const std::string& data, const std::string& layers,
                                       const std::string& optimizer = "sgd") {
  return model_from(model_text(data, layers, optimizer));
}

inline constexpr const Precision& kFp32 = kPrecisions[0];

[[nodiscard]] inline TrainingStep step_of(const Model& model, const Lowering& lowering = {},
                                          const Precision& precision = kFp32) {
  return expand_training_step(model, lowering, precision);
}

// Bytes of feature maps that outlive the last forward kernel of an iteration of one pass.
[[nodiscard]] inline Size kept_for_backward(const TrainingStep& step) {
  int last_forward = 0;
  for (std::size_t k = 0; k < step.kernels.size(); ++k) {
    if (step.kernels[k].phase == Phase::forward) last_forward = static_cast<int>(k);
  }
  Size bytes;
  for (const Tensor& tensor : step.tensors) {
    if (tensor.role != TensorRole::feature_map) continue;
    if (tensor.first_use <= last_forward && tensor.last_use > last_forward) bytes += tensor.bytes;
  }
  return bytes;
}

// "relu backward_data" for each kernel.
[[nodiscard]] inline std::vector<std::string> program(const TrainingStep& step) {
  std::vector<std::string> lines;
  for (const Kernel& kernel : step.kernels)
    lines.push_back(std::string(kernel.op) + " " + std::string(name_of(kernel.phase)));
  return lines;
}

[[nodiscard]] inline std::vector<Kernel> kernels_of(const TrainingStep& step, std::string_view op) {
  std::vector<Kernel> found;
  for (const Kernel& kernel : step.kernels) {
    if (kernel.op == op) found.push_back(kernel);
  }
  return found;
}

}  // namespace tbdsim::test
