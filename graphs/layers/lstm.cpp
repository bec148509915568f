// lstm: i, f, o = sigmoid(W * [x, h] + b), g = tanh(W * [x, h] + b), c = f * c + i * g, h = o * tanh(c). Keys
// beside those of every recurrent layer: forget_bias (a constant is added to f before activation), masked (a
// step that is padding of its sample passes c and h on).
#include "graphs/layers/layer_types.h"
#include "graphs/layers/recurrent.h"

namespace tbdsim {
namespace {

// Operations on each unit in one kernel: four gates of two sums and an activation, tanh(c), four more.
constexpr std::int64_t kUnitFlops = 4 * 3 + 1 + 4;

class Lstm : public RecurrentLayer {
 public:
  explicit Lstm(SpecMap& keys)
      : RecurrentLayer({.op = "lstm", .gates = 4, .states = 2, .kept = kLstmKeeps}, keys) {
    if (const auto forget = keys.find("forget_bias")) forget_bias_ = forget->flag();
    if (const auto masked = keys.find("masked")) masked_ = masked->flag();
  }

 private:
  void step_forward(const LayerContext& site, CellStep& step) const override {
    const std::int64_t h = hidden();
    products_forward(width(site.inputs), step);
    if (step.fused_pointwise()) {
      // Reads the products and c, writes the gates, c and h.
      step.pointwise("lstm_cell", Phase::forward, h, kUnitFlops, joined(step.lowering()) ? 5 : 9, 6);
    } else {
      gates_forward(step);
    }
    for (int state = 0; masked_ && state < 2; ++state) step.pointwise("select", Phase::forward, h, 0, 2, 1);
  }

  // A fused kernel adds the products and biases itself.
  void products_forward(std::int64_t in, CellStep& step) const {
    const std::int64_t h = hidden();
    const bool biased = !step.fused_pointwise();
    if (fed() > 0) step.join("concat", Phase::forward, {in - fed(), fed()});
    if (joined(step.lowering())) {
      step.join("concat", Phase::forward, {in, h});
      step.product(in + h, 4 * h);
    } else {
      step.product(in, 4 * h);
      if (biased && biases() == 2) step.bias(4 * h);
      step.product(h, 4 * h);
    }
    if (!biased) return;
    step.bias(4 * h);
    if (!joined(step.lowering())) step.add(4 * h);
  }

  void gates_forward(CellStep& step) const {
    const std::int64_t h = hidden();
    step.split("split", Phase::forward, {h, h, h, h});
    if (forget_bias_) step.pointwise("add", Phase::forward, h, 1, 1, 1);
    for (int gate = 0; gate < 3; ++gate) step.activation("sigmoid", h);
    step.activation("tanh", h);
    step.multiply(h);
    step.multiply(h);
    step.add(h);
    step.activation("tanh", h);
    step.multiply(h);
  }

  // The gradient of h comes from the output and from the next step, that of c from h and from the next step.
  void step_backward(const LayerContext& site, CellStep& step) const override {
    const std::int64_t h = hidden();
    step.sum_gradients(h, 2);
    for (int branch = 0; masked_ && branch < 4; ++branch)
      step.pointwise("select", Phase::backward_data, h, 0, 1, 1);
    if (step.fused_pointwise()) {
      // Reads the gates, both values of c and the gradients of c and h; writes those of the gates and of c.
      step.pointwise("lstm_cell", Phase::backward_data, h, kUnitFlops, 8, 5);
    } else {
      gates_backward(step);
    }
    if (site.weight_gradient) biases_backward(step);
    products_backward(site, step);
  }

  // Biases that are added one by one get a sum over the rows each; otherwise one sum serves both.
  void biases_backward(CellStep& step) const {
    const bool each = !step.fused_pointwise() && !joined(step.lowering()) && biases() == 2;
    step.bias_gradient(4 * hidden(), each ? 1 : biases());
    if (each) step.bias_gradient(4 * hidden());
  }

  void products_backward(const LayerContext& site, CellStep& step) const {
    const std::int64_t h = hidden();
    const std::int64_t in = width(site.inputs);
    if (joined(step.lowering())) {
      if (site.weight_gradient) step.weight_gradient(in + h, 4 * h);
      step.data_gradient(in + h, 4 * h);
      step.slices("concat", Phase::backward_data, {in, h});
    } else {
      if (site.weight_gradient) step.weight_gradient(in, 4 * h);
      if (site.input_gradient || fed() > 0) step.data_gradient(in, 4 * h);
      if (site.weight_gradient) step.weight_gradient(h, 4 * h);
      step.data_gradient(h, 4 * h);
    }
    if (fed() == 0) return;
    step.slices("concat", Phase::backward_data, {in - fed(), fed()});
    step.sum_gradients(fed(), 2);  // the fed input has another reader in its own step
  }

  void gates_backward(CellStep& step) const {
    const std::int64_t h = hidden();
    step.multiply_gradients(h);
    step.activation_gradient("tanh", h);
    step.sum_gradients(h, 2);
    step.multiply_gradients(h);
    step.multiply_gradients(h);
    step.activation_gradient("tanh", h);
    for (int gate = 0; gate < 3; ++gate) step.activation_gradient("sigmoid", h);
    step.join("split", Phase::backward_data, {h, h, h, h});
  }

  // The gates after activation and, where an activation keeps its input, before; c and, unless it is made
  // again in one kernel, tanh(c). Copies made by a join are what the products read.
  [[nodiscard]] Kept kept_by_step(const LayerContext& site, const Lowering& lowering) const override {
    const std::int64_t h = hidden();
    const bool one = joined(lowering);
    std::int64_t kept = 5 * h;
    if (lowering.cell_pointwise == Composition::composite)
      kept += lowering.relu_keeps == ReluKeeps::input_and_output ? 5 * h : h;
    if (one || fed() > 0) kept += width(site.inputs);
    if (one) kept += h;
    return {.width = kept,
            .inputs = site.weight_gradient && !one && fed() == 0,
            .output = site.weight_gradient && !one};
  }

  [[nodiscard]] static bool joined(const Lowering& lowering) {
    return lowering.cell_products == CellProducts::joined;
  }

  bool forget_bias_ = false;
  bool masked_ = false;
};

}  // namespace

std::unique_ptr<Layer> make_lstm(SpecMap& keys) { return std::make_unique<Lstm>(keys); }

}  // namespace tbdsim
