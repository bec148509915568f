// hard_negative_loss: softmax and cross entropy of every box of an image {classes, boxes}, of which those
// with an object count and of the others the three times as many with the largest loss (Liu et al., "SSD",
// ECCV 2016).
//
// PyTorch, as MLPerf's ssd/base_model.py and NVIDIA's SSD/ssd/model.py write it (Loss.forward): a log-softmax
// and a gather; a masked copy; two sorts, whose second gives each box its rank; a comparison; a product and a
// sum.
#include "graphs/layers/layer_types.h"
#include "graphs/layers/terms.h"

namespace tbdsim {
namespace {

// A radix sort of 32-bit keys with 64-bit indices: 8 bits a pass, and a histogram before it (an estimate).
constexpr std::int64_t kSortPasses = 4;
constexpr std::int64_t kSortedBytes = 4 + 8;
constexpr std::int64_t kLogSoftmaxFlops = 5;  // maximum, difference, exponential, sum, difference

// Over the loss of every box.
constexpr Term kMask[] = {{"greater", 1, 1}, {"copy", 1, 1}, {"masked_fill", 2, 1}, {"sum", 1, 0}};
constexpr Term kSelect[] = {{"less", 1, 1}, {"add", 2, 1}, {"mul", 2, 1}, {"sum", 1, 0}};

class HardNegativeLoss : public Layer {
 public:
  [[nodiscard]] Shape output_shape(std::span<const Shape> inputs) const override {
    require_inputs(inputs, 1);
    if (inputs[0].dims.size() != 2)
      throw ShapeMismatch("input has shape " + to_text(inputs[0]) + "; expected classes x boxes");
    return inputs[0];
  }

  void forward(const LayerContext& site, const LoweringContext& how,
               std::vector<Kernel>& kernels) const override {
    const Size x = stored_bytes(site.output, how.precision);
    softmax(Phase::forward, site, x, x, kernels);
    const TermSizes sizes{.elements = boxes(site), .statistics = site.output.rows, .scratch = {}};
    kernels.push_back(memory_kernel(KernelKind::gather, Phase::forward, "nll", {boxes(site), {}}, 1,
                                    boxes(site) * (2 * kFp32Bytes), boxes(site) * kFp32Bytes));
    kernels.back().shape = MatrixShape{boxes(site), 1};
    append_terms(kMask, sizes, Phase::forward, how.precision, kernels);
    for (int sort = 0; sort < 2; ++sort) {
      const Size bytes = boxes(site) * kSortedBytes;
      kernels.push_back(memory_kernel(KernelKind::elementwise, Phase::forward, "radix_sort",
                                      {boxes(site), {}}, 4, bytes, bytes));
      kernels.back().repeat = 2 * kSortPasses;
    }
    append_terms(kSelect, sizes, Phase::forward, how.precision, kernels);
  }

  void backward(const LayerContext& site, const LoweringContext& how,
                std::vector<Kernel>& kernels) const override {
    if (!site.input_gradient) return;
    const Size x = stored_bytes(site.output, how.precision);
    kernels.push_back(
        memory_kernel(KernelKind::elementwise, Phase::backward_data, "fill", site.output, 0, {}, x));
    softmax(Phase::backward_data, site, x * 2, x, kernels);
  }

  [[nodiscard]] bool is_loss() const override { return true; }
  [[nodiscard]] BackwardNeeds backward_needs(const LayerContext& site,
                                             const LoweringContext&) const override {
    return {.output = site.input_gradient};
  }

 private:
  static Size boxes(const LayerContext& site) { return site.output.rows * site.output.dims[1]; }
  static void softmax(Phase phase, const LayerContext& site, Size read, Size written,
                      std::vector<Kernel>& kernels) {
    kernels.push_back(memory_kernel(KernelKind::softmax, phase, "log_softmax", site.output, kLogSoftmaxFlops,
                                    read, written));
    kernels.back().shape = MatrixShape{boxes(site), site.output.dims[0]};
  }
};

}  // namespace

std::unique_ptr<Layer> make_hard_negative_loss(SpecMap&) { return std::make_unique<HardNegativeLoss>(); }

}  // namespace tbdsim
