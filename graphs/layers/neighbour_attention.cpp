// neighbour_attention: for each target node the sum of its neighbours' vectors, weighted by a softmax over
// them of LeakyReLU(a_s x_s + a_t x_t) for each head (Velickovic et al., Graph Attention Networks, ICLR
// 2018). Inputs are {sources, width} and {targets, width}, behind their matrix products; `edges` of a sample
// were drawn from a graph. One kernel forward and one backward, and the sum with the bias (cugraph-ops,
// mha_gat_n2n, as mlcommons/training_results_v4.0,
// NVIDIA/benchmarks/gnn/implementations/dgl/model/dgl_model.py calls it).
//
//   forward   reads a source for each edge, and the targets; writes the targets
//   backward  reads a source for each edge and adds to its gradient, which is zeroed before; reads the targets and
//             their gradients once, as one block has all edges of a target
#include "graphs/layers/layer_types.h"

namespace tbdsim {
namespace {

constexpr std::int64_t kMostEdges = 1'000'000'000;
constexpr std::int64_t kMostHeads = 10'000;
// For each number of an edge's vector: its part of a score, a product with the weight, two sums.
constexpr std::int64_t kForwardFlops = 4;
constexpr std::int64_t kBackwardFlops = 8;

class NeighbourAttention : public Layer {
 public:
  explicit NeighbourAttention(SpecMap& keys)
      : edges_(keys.at("edges").count(1, kMostEdges)), heads_(keys.at("heads").count(1, kMostHeads)) {}

  [[nodiscard]] Shape output_shape(std::span<const Shape> inputs) const override {
    require_inputs(inputs, 2);
    require_same_rows(inputs);
    const Shape& sources = inputs[0];
    const Shape& targets = inputs[1];
    if (sources.dims.size() != 2 || targets.dims.size() != 2 || sources.dims[1] != targets.dims[1] ||
        sources.dims[1] % heads_ != 0) {
      throw ShapeMismatch("inputs have shapes " + to_text(sources) + " and " + to_text(targets) +
                          "; expected nodes x width, the widths equal and of whole heads");
    }
    return targets;
  }

  // Attention's vectors of sources and of targets, and the bias.
  [[nodiscard]] std::vector<ParameterTensor> parameters(std::span<const Shape> inputs) const override {
    const std::int64_t width = last_dimension(inputs[1]);
    return {{"attention", checked_multiply(2, width)}, {"bias", width}};
  }

  void forward(const LayerContext& site, const LoweringContext& how,
               std::vector<Kernel>& kernels) const override {
    const Size targets = stored_bytes(site.output, how.precision);
    over_edges(site, Phase::forward, kForwardFlops, edge_bytes(site, how) + indices(site) + targets, targets,
               kernels);
    kernels.push_back(
        memory_kernel(KernelKind::elementwise, Phase::forward, "bias", site.output, 1, targets, targets));
  }

  void backward(const LayerContext& site, const LoweringContext& how,
                std::vector<Kernel>& kernels) const override {
    if (!site.input_gradient && !site.weight_gradient) return;
    const Size targets = stored_bytes(site.output, how.precision);
    if (site.weight_gradient)
      kernels.push_back(memory_kernel(KernelKind::reduction, Phase::backward_weights, "bias_gradient",
                                      site.output, 1, targets, fixed_size(last_dimension(site.output))));
    const Phase phase = site.input_gradient ? Phase::backward_data : Phase::backward_weights;
    const Size edges = edge_bytes(site, how);
    kernels.push_back(memory_kernel(KernelKind::elementwise, phase, "fill", site.inputs[0], 0, {},
                                    stored_bytes(site.inputs[0], how.precision)));
    over_edges(site, phase, kBackwardFlops, edges * 2 + indices(site) + targets * 2, edges + targets,
               kernels);
  }

  [[nodiscard]] BackwardNeeds backward_needs(const LayerContext&, const LoweringContext&) const override {
    return {.inputs = true};
  }

 private:
  // Bytes of a vector for each edge.
  [[nodiscard]] Size edge_bytes(const LayerContext& site, const LoweringContext& how) const {
    return stored_bytes({site.output.rows, {edges_, last_dimension(site.output)}}, how.precision);
  }
  [[nodiscard]] Size indices(const LayerContext& site) const {
    return site.output.rows * checked_multiply(edges_, kIndexBytes);
  }
  void over_edges(const LayerContext& site, Phase phase, std::int64_t flops, const Size& read,
                  const Size& written, std::vector<Kernel>& kernels) const {
    const Shape vectors{site.output.rows, {edges_, last_dimension(site.output)}};
    kernels.push_back(
        memory_kernel(KernelKind::gather, phase, "neighbour_attention", vectors, flops, read, written));
    kernels.back().shape = position_matrix(vectors);
  }

  std::int64_t edges_;
  std::int64_t heads_;
};

}  // namespace

std::unique_ptr<Layer> make_neighbour_attention(SpecMap& keys) {
  return std::make_unique<NeighbourAttention>(keys);
}

}  // namespace tbdsim
