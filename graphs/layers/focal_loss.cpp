// focal_loss: cross entropy of the logistic function of every score, weighted by how far the score is from
// its target (Lin et al., "Focal Loss for Dense Object Detection", ICCV 2017), in the forms that programs
// have it:
//
//   graph        google/automl's EfficientDet in TensorFlow: the targets of all classes, the logistic function,
//                the cross entropy of scores, p_t, a power, alpha's factor, their product, a sum; and back
//                through each (the number of operators is derived, not traced)
//   torchvision  torchvision.ops.sigmoid_focal_loss on the scores of the anchors that count, an image at a time,
//                with the cross entropy and the power in fp32: the kernels of RetinaNet's captured step on an
//                H100 (calibrate/records/h100_sxm/step_kernels.csv.gz), but for sorting the indices
//   fused        one kernel that also writes what the backward pass multiplies by the loss's gradient: apex's
//                focal_loss_cuda_kernel.cu, as in DeepLearningExamples' EfficientDet
//   fused_images the same an image at a time, as MLPerf's RetinaNet calls it (sigmoid_focal_loss_masked_fused in
//                NVIDIA/benchmarks/ssd, model/focal_loss.py): the gradients of the images are joined by a copy
#include "graphs/layers/layer_types.h"
#include "graphs/layers/terms.h"
#include "graphs/layers/wide_terms.h"

namespace tbdsim {
namespace {

enum class FocalForm { graph, torchvision, fused, fused_images };
constexpr std::array<std::string_view, 4> kFocalForms = {"graph", "torchvision", "fused", "fused_images"};

constexpr Term kGraph[] = {{"one_hot", 0, 1}, {"sigmoid", 1, 1}, {"logistic", 2, 1, 3}, {"mul", 2, 1, 3},
                           {"pow", 1, 1},     {"select", 2, 1},  {"sum", 1, 0}};
constexpr Term kGraphBackward[] = {{"mul", 2, 1, 5}, {"pow", 2, 1}, {"sigmoid", 2, 1}, {"add", 2, 1, 2}};

// Tensors read and written: stored ones, fp32 ones (reads stored, reads fp32, writes stored, writes fp32).
constexpr WideTerm kTorchvision[] = {
    {"fill", 0, 0, 1, 0},             // no class
    {"index", 1, 0, 1, 0, false, 2},  // scores and targets of the anchors that count
    {"sigmoid", 1, 0, 1, 0},          //
    {"cast", 1, 0, 0, 1, true, 3},    // scores, targets, and the power's base
    {"log_sigmoid", 0, 1, 0, 1},      // the cross entropy
    {"fill", 0, 0, 0, 1},             //
    {"sub", 0, 2, 0, 1, false, 2},    //
    {"mul", 0, 2, 0, 1},              //
    {"mul", 2, 0, 1, 0, false, 2},    // p_t and alpha's factor
    {"sub", 1, 0, 1, 0, false, 4},    //
    {"add", 2, 0, 1, 0, false, 2},    //
    {"mul", 1, 0, 1, 0, false, 2},    //
    {"pow", 0, 1, 0, 1},              //
    {"mul", 0, 2, 0, 1},              //
    {"mul", 1, 1, 0, 1},              //
    {"sum", 0, 1, 0, 0},
};
constexpr WideTerm kTorchvisionBackward[] = {
    {"mul", 1, 0, 0, 1},            // alpha's factor
    {"mul", 0, 2, 0, 1, false, 3},  // both factors of the product, the power
    {"mul", 0, 1, 0, 1},            //
    {"copy", 0, 1, 0, 1},           //
    {"sigmoid", 0, 1, 0, 1},        // the cross entropy
    {"sub", 0, 2, 0, 1},            //
    {"mul", 0, 2, 0, 1},            //
    {"cast", 0, 1, 1, 0, true, 2},  //
    {"neg", 1, 0, 1, 0, false, 2},  // p_t
    {"mul", 2, 0, 1, 0, false, 2},  //
    {"add", 2, 0, 1, 0, false, 2},  //
    {"sigmoid", 2, 0, 1, 0},        //
    {"fill", 0, 0, 1, 0},           // anchors that do not count
    {"index", 1, 0, 1, 0},          //
    {"concat", 1, 0, 1, 0},         // images
};

// Floating-point instructions for a score, a fused multiply-add counted twice: multiplications 15.4,
// additions 5.1, fused ones 3.0, special functions 6.4 in what NVRTC 13.2 makes of the same arithmetic for
// sm_80 and sm_90 with apex's flags (--use_fast_math --ftz=false). Two exponentials, a logarithm, a power and
// two quotients bind the kernel, not its bytes.
constexpr std::int64_t kFusedFlops = 33;

class FocalLoss : public Layer {
 public:
  explicit FocalLoss(FocalForm form) : form_(form) {}

  [[nodiscard]] Shape output_shape(std::span<const Shape> inputs) const override {
    require_inputs(inputs, 1);
    return inputs[0];
  }

  void forward(const LayerContext& site, const LoweringContext& how,
               std::vector<Kernel>& kernels) const override {
    if (form_ == FocalForm::graph) {
      append_terms(kGraph, sizes(site), Phase::forward, how.precision, kernels);
    } else if (form_ == FocalForm::torchvision) {
      append_wide_terms(kTorchvision, wide_sizes(site), Phase::forward, how.precision, kernels);
    } else {
      const Size x = stored_bytes(site.output, how.precision);
      kernels.push_back(memory_kernel(KernelKind::elementwise, Phase::forward, "focal_loss", site.output,
                                      kFusedFlops, x, x));
    }
  }

  void backward(const LayerContext& site, const LoweringContext& how,
                std::vector<Kernel>& kernels) const override {
    if (!site.input_gradient) return;
    constexpr Phase kBack = Phase::backward_data;
    if (form_ == FocalForm::graph) {
      append_terms(kGraphBackward, sizes(site), kBack, how.precision, kernels);
    } else if (form_ == FocalForm::torchvision) {
      append_wide_terms(kTorchvisionBackward, wide_sizes(site), kBack, how.precision, kernels);
    } else {
      const Size x = stored_bytes(site.output, how.precision);
      const auto pass = [&](std::string_view op, std::int64_t flops) {
        kernels.push_back(memory_kernel(KernelKind::elementwise, kBack, op, site.output, flops, x, x));
      };
      pass("focal_loss", 1);
      if (form_ == FocalForm::fused_images) pass("concat", 0);
    }
  }

  [[nodiscard]] bool is_loss() const override { return true; }
  [[nodiscard]] BackwardNeeds backward_needs(const LayerContext& site,
                                             const LoweringContext&) const override {
    return {.inputs = site.input_gradient};
  }

 private:
  static TermSizes sizes(const LayerContext& site) {
    return {.elements = elements(site.output), .statistics = fixed_size(1), .scratch = {}};
  }
  static WideSizes wide_sizes(const LayerContext& site) {
    return {.elements = elements(site.output), .statistics = fixed_size(1)};
  }

  FocalForm form_;
};

}  // namespace

std::unique_ptr<Layer> make_focal_loss(SpecMap& keys) {
  const auto form = keys.find("form");
  return std::make_unique<FocalLoss>(form ? static_cast<FocalForm>(form->one_of(kFocalForms))
                                          : FocalForm::graph);
}

}  // namespace tbdsim
