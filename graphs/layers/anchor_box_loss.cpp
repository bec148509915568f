// anchor_box_loss: the absolute difference of every anchor's four offsets from those of its object, masked by
// which anchors have one, so that sizes are the same for all images and CUDA graphs can run it. The targets
// of boxes and classes are made of the objects on the GPU. As MLPerf's RetinaNet has it
// (NVIDIA/benchmarks/ssd of mlcommons/training_results_v4.0, model/retinanet.py:
// compute_loss_prologue_padded, compute_loss_core_padded; model/utils.py: encode_boxes_batch): operators
// counted in the code, not traced.
#include "graphs/layers/layer_types.h"
#include "graphs/layers/wide_terms.h"

namespace tbdsim {
namespace {

constexpr std::int64_t kOffsets = 4;  // of an anchor

// Numbers of an anchor that a kernel reads and writes: offsets as the network has them, fp32 words. A column
// of boxes is read with the three others beside it; an index has two words.
constexpr WideTerm kTargets[] = {
    {"ge", 0, 2, 0, 1, false, 2},   // which anchors have an object
    {"where", 0, 3, 0, 2},          // their objects' classes
    {"gather", 0, 2, 0, 2},         //
    {"where", 0, 3, 0, 2},          //
    {"clamp", 0, 2, 0, 2},          // their objects' boxes
    {"gather", 0, 6, 0, 4},         //
    {"stack", 0, 4, 0, 4},          // anchors of every image
    {"sub", 0, 8, 0, 1, false, 4},  // width and height of anchors and boxes
    {"mul", 0, 1, 0, 1, false, 4},  // their centres
    {"add", 0, 5, 0, 1, false, 4},  //
    {"sub", 0, 2, 0, 1, false, 2},  // the offsets
    {"mul", 0, 1, 0, 1, false, 4},  //
    {"div", 0, 2, 0, 1, false, 4},  //
    {"log", 0, 1, 0, 1, false, 2},  //
    {"concat", 0, 4, 0, 4},         //
    {"mul", 0, 5, 0, 4},            // the mask
};
constexpr WideTerm kLoss[] = {{"mul", 4, 1, 4, 0}, {"sub", 4, 4, 0, 4}, {"norm", 0, 4, 0, 0}};
constexpr WideTerm kLossBackward[] = {
    {"sign", 0, 4, 0, 4}, {"mul", 0, 4, 0, 4}, {"cast", 0, 4, 4, 0, true}, {"mul", 4, 1, 4, 0}};

class AnchorBoxLoss : public Layer {
 public:
  [[nodiscard]] Shape output_shape(std::span<const Shape> inputs) const override {
    require_inputs(inputs, 1);
    if (inputs[0].dims.size() != 1 || inputs[0].dims[0] != kOffsets)
      throw ShapeMismatch("input has shape " + to_text(inputs[0]) + "; expected rows of 4, anchor_rows");
    return inputs[0];
  }

  void forward(const LayerContext& site, const LoweringContext& how,
               std::vector<Kernel>& kernels) const override {
    append_wide_terms(kTargets, sizes(site), Phase::forward, how.precision, kernels);
    append_wide_terms(kLoss, sizes(site), Phase::forward, how.precision, kernels);
  }

  void backward(const LayerContext& site, const LoweringContext& how,
                std::vector<Kernel>& kernels) const override {
    if (site.input_gradient)
      append_wide_terms(kLossBackward, sizes(site), Phase::backward_data, how.precision, kernels);
  }

  [[nodiscard]] bool is_loss() const override { return true; }
  [[nodiscard]] BackwardNeeds backward_needs(const LayerContext& site,
                                             const LoweringContext&) const override {
    return {.inputs = site.input_gradient};
  }

 private:
  static WideSizes sizes(const LayerContext& site) {
    return {.elements = site.output.rows, .statistics = fixed_size(1)};
  }
};

}  // namespace

std::unique_ptr<Layer> make_anchor_box_loss(SpecMap&) { return std::make_unique<AnchorBoxLoss>(); }

}  // namespace tbdsim
