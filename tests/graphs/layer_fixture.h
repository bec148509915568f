// One layer as a test sets it up: a line of YAML and input shapes in, shapes, parameters and kernels out.
#pragma once

#include <memory>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graphs/layers/layer_types.h"
#include "hwspecs/base/spec_reader.h"

namespace tbdsim {

// How a failed comparison shows a size: "12 + 34 b".
inline void PrintTo(const Size& size, std::ostream* out) {
  *out << size.fixed << " + " << size.per_sample << " b";
}

namespace test {

// A size that grows with the batch only.
[[nodiscard]] inline Size per_sample(std::int64_t n) { return {0, n}; }

// One row a sample.
[[nodiscard]] inline Shape image(std::int64_t channels, std::int64_t height, std::int64_t width) {
  return {per_sample(1), {channels, height, width}};
}
[[nodiscard]] inline Shape vector(std::int64_t elements) { return {per_sample(1), {elements}}; }

// The layer a model file would make of "{type: relu}".
[[nodiscard]] inline std::unique_ptr<Layer> make_layer(const std::string& yaml) {
  const SpecTree tree = parse_spec(yaml, "layer.yaml");
  std::unique_ptr<Layer> layer;
  SpecNode(tree).map([&](SpecMap& m) { layer = layer_type(m.at("type")).make(m); });
  return layer;
}

// A kernel's kind and work, without its layer and its detailed shape.
struct Work {
  std::string_view op;
  KernelKind kind = KernelKind::elementwise;
  Phase phase = Phase::forward;
  Size flops, macs, read, written, scratch;

  friend bool operator==(const Work&, const Work&) = default;
};

inline void PrintTo(const Work& work, std::ostream* out) {
  *out << work.op << ' ' << name_of(work.kind) << ' ' << name_of(work.phase);
  const std::pair<const char*, const Size*> sizes[] = {{" flops ", &work.flops},
                                                       {" macs ", &work.macs},
                                                       {" read ", &work.read},
                                                       {" written ", &work.written},
                                                       {" scratch ", &work.scratch}};
  for (const auto& [name, size] : sizes) {
    *out << name;
    PrintTo(*size, out);
  }
}

[[nodiscard]] inline std::vector<Work> works_of(const std::vector<Kernel>& kernels) {
  std::vector<Work> works;
  for (const Kernel& k : kernels) {
    works.push_back({k.op, k.kind, k.phase, k.flops, k.macs, k.read_bytes, k.written_bytes, k.scratch_bytes});
  }
  return works;
}

// A layer between trained layers, lowered plainly, in fp32, unless a test says otherwise.
struct LayerBench {
  LayerBench(const std::string& yaml, std::vector<Shape> with_inputs)
      : layer(make_layer(yaml)), inputs(std::move(with_inputs)), output(layer->output_shape(inputs)) {}

  [[nodiscard]] LayerContext site() const { return {inputs, output, input_gradient, weight_gradient}; }
  [[nodiscard]] std::vector<Kernel> forward() const {
    std::vector<Kernel> kernels;
    layer->forward(site(), {lowering, precision}, kernels);
    return kernels;
  }
  [[nodiscard]] std::vector<Kernel> backward() const {
    std::vector<Kernel> kernels;
    layer->backward(site(), {lowering, precision}, kernels);
    return kernels;
  }
  [[nodiscard]] BackwardNeeds needs() const { return layer->backward_needs(site(), {lowering, precision}); }

  std::unique_ptr<Layer> layer;
  std::vector<Shape> inputs;
  Shape output;
  Lowering lowering{};
  Precision precision = kPrecisions[0];
  bool input_gradient = true;
  bool weight_gradient = true;
};

inline constexpr const Precision& kFp16 = kPrecisions[3];

}  // namespace test
}  // namespace tbdsim
