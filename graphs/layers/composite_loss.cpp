// Losses that frameworks make of element-wise operations, over every number of a row.
//
// smooth_l1_loss: the sum of w * f(x - target), f(d) = d^2 / 2 near zero and |d| - 1/2 beyond. MXNet makes it
// of these operations without the sum, others of about as many. logistic_loss: cross entropy of the logistic
// function of every score against its own target, dx = sigmoid(x) - target; as PyTorch 1.3 composes it
// (ATen/native/Loss.cpp, binary_cross_entropy_with_logits), which is stable for large scores: (1 - t) * x + m
// + log(e^-m + e^(-x - m)), m = max(-x, 0).
#include "graphs/layers/layer_types.h"
#include "graphs/layers/terms.h"

namespace tbdsim {
namespace {

constexpr Term kSmoothL1[] = {{"sub", 2, 1}, {"smooth_l1", 1, 1}, {"mul", 2, 1}, {"sum", 1, 0}};
constexpr Term kSmoothL1Backward[] = {{"mul", 2, 1}, {"smooth_l1", 2, 1}};
constexpr Term kLogistic[] = {{"neg", 1, 1, 3}, {"clamp", 1, 1},  {"sub", 1, 1},
                              {"mul", 2, 1},    {"exp", 1, 1, 2}, {"sub", 2, 1},
                              {"add", 2, 1, 3}, {"log", 1, 1},    {"mean", 1, 0}};
constexpr Term kLogisticBackward[] = {{"sigmoid", 1, 1}, {"sub", 2, 1}, {"mul", 1, 1}};
// 1 - 2 sum(p t) / (sum(p) + sum(t)) of each class, with p the softmax, and the cross entropy of the same
// scores (MLPerf image_segmentation/pytorch model/losses.py DiceCELoss, from memory): targets of all classes,
// products and sums.
constexpr Term kDice[] = {{"one_hot", 0, 1}, {"softmax", 1, 1}, {"mul", 2, 1},         {"sum", 1, 0, 3},
                          {"add", 0, 0, 6},  {"mean", 0, 0},    {"log_softmax", 1, 1}, {"nll", 1, 0}};
constexpr Term kDiceBackward[] = {{"mul", 1, 1, 2}, {"softmax", 2, 1}, {"log_softmax", 2, 1}, {"add", 2, 1}};

class CompositeLoss : public Layer {
 public:
  // The first input is the prediction; the second, where a layer computes it, the targets.
  CompositeLoss(std::size_t inputs, std::span<const Term> forward, std::span<const Term> backward)
      : inputs_(inputs), forward_(forward), backward_(backward) {}

  [[nodiscard]] Shape output_shape(std::span<const Shape> inputs) const override {
    require_inputs(inputs, inputs_);
    require_same_rows(inputs);
    return inputs[0];
  }

  void forward(const LayerContext& site, const LoweringContext& how,
               std::vector<Kernel>& kernels) const override {
    append_terms(forward_, sizes(site), Phase::forward, how.precision, kernels);
  }

  void backward(const LayerContext& site, const LoweringContext& how,
                std::vector<Kernel>& kernels) const override {
    if (!site.input_gradient) return;
    append_terms(backward_, sizes(site), Phase::backward_data, how.precision, kernels);
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

  std::size_t inputs_;
  std::span<const Term> forward_, backward_;
};

}  // namespace

std::unique_ptr<Layer> make_smooth_l1_loss(SpecMap& keys) {
  // The targets: of a layer, or as the loader made them.
  const auto given = keys.find("targets");
  const bool layer = !given || given->one_of({"layer", "given"}) == 0;
  return std::make_unique<CompositeLoss>(layer ? 2 : 1, kSmoothL1, kSmoothL1Backward);
}

std::unique_ptr<Layer> make_dice_loss(SpecMap&) {
  return std::make_unique<CompositeLoss>(1, kDice, kDiceBackward);
}

std::unique_ptr<Layer> make_logistic_loss(SpecMap&) {
  return std::make_unique<CompositeLoss>(1, kLogistic, kLogisticBackward);
}

}  // namespace tbdsim
