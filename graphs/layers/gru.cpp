// gru: r, z = sigmoid(W * x + U * h + b), n = tanh(W * x + b + r * (U * h + b)), h = h + z * (n - h), as in
// libraries, whose input and state have biases of their own; `biases: 1` is of cells that have one
// (TensorFlow's GRUCell). `gates: given`: the second input holds W * x + b of r and z for every step,
// possibly normalised, and n = tanh(W * x + U * (r * h) + b); no library computes that.
#include "graphs/layers/layer_types.h"
#include "graphs/layers/recurrent.h"

namespace tbdsim {
namespace {

// Operations on each unit in one kernel: three gates of two sums and an activation, five more.
constexpr std::int64_t kUnitFlops = 3 * 3 + 5;

class Gru : public RecurrentLayer {
 public:
  explicit Gru(SpecMap& keys)
      : RecurrentLayer({.op = "gru", .gates = 3, .states = 1, .kept = kGruKeeps}, keys) {
    if (fed() > 0) keys.at("feed").fail("is of an lstm; expected none");
    if (const auto gates = keys.find("gates")) given_ = gates->one_of({"own", "given"}) == 1;
    if (given_ && biases() != 2) keys.at("biases").fail("is 1; expected 2, input and state apart");
  }

  [[nodiscard]] Shape output_shape(std::span<const Shape> inputs) const override {
    if (!given_) return RecurrentLayer::output_shape(inputs);
    require_sequences(inputs, 2);
    if (inputs[1].dims[1] != 2 * hidden()) {
      throw ShapeMismatch("gates have shape " + to_text(inputs[1]) + "; expected two of " +
                          std::to_string(hidden()) + " for each step");
    }
    return {inputs[0].rows, {inputs[0].dims[0], hidden()}};
  }

  [[nodiscard]] std::vector<ParameterTensor> parameters(std::span<const Shape> inputs) const override {
    if (!given_) return RecurrentLayer::parameters(inputs);
    const std::int64_t h = hidden();
    return {{"gates_state_weight", checked_multiply(h, 2 * h), true, true},
            {"gates_state_bias", 2 * h, true, true},
            {"new_input_weight", checked_multiply(width(inputs), h), true, true},
            {"new_input_bias", h, true, true},
            {"new_state_weight", checked_multiply(h, h), true, true},
            {"new_state_bias", h, true, true}};
  }

 private:
  [[nodiscard]] bool fits_library() const override { return !given_; }

  void step_forward(const LayerContext& site, CellStep& step) const override {
    const std::int64_t in = width(site.inputs);
    const std::int64_t h = hidden();
    if (given_) {
      given_forward(in, step);
    } else if (step.fused_pointwise()) {
      step.product(in, 3 * h);
      step.product(h, 3 * h);
      step.pointwise("gru_cell", Phase::forward, h, kUnitFlops, 7, 5);  // writes r, z, n, U * h + b and h
    } else {
      own_forward(in, step);
    }
  }

  void step_backward(const LayerContext& site, CellStep& step) const override {
    const std::int64_t in = width(site.inputs);
    const std::int64_t h = hidden();
    if (given_) {
      given_backward(site, in, step);
      return;
    }
    if (step.fused_pointwise()) {
      step.sum_gradients(h, 3);
      step.pointwise("gru_cell", Phase::backward_data, h, kUnitFlops, 6,
                     7);  // both gradients of 3 gates, of h
    } else {
      own_backward(step);
    }
    linear_backward(in, 3 * h, site.weight_gradient, site.input_gradient, step);
    if (biases() == 1) {
      if (site.weight_gradient) step.weight_gradient(h, 3 * h);
      step.data_gradient(h, 3 * h);
    } else {
      linear_backward(h, 3 * h, site.weight_gradient, true, step);
    }
  }

  static void linear_forward(std::int64_t in, std::int64_t out, CellStep& step) {
    step.product(in, out);
    step.bias(out);
  }
  static void linear_backward(std::int64_t in, std::int64_t out, bool weights, bool data, CellStep& step) {
    if (weights) step.bias_gradient(out);
    if (weights) step.weight_gradient(in, out);
    if (data) step.data_gradient(in, out);
  }

  void own_forward(std::int64_t in, CellStep& step) const {
    const std::int64_t h = hidden();
    linear_forward(in, 3 * h, step);
    if (biases() == 1) {
      step.product(h, 3 * h);
    } else {
      linear_forward(h, 3 * h, step);
    }
    for (int source = 0; source < 2; ++source) step.split("split", Phase::forward, {h, h, h});
    for (int gate = 0; gate < 2; ++gate) {
      step.add(h);
      step.activation("sigmoid", h);
    }
    step.multiply(h);
    step.add(h);
    step.activation("tanh", h);
    interpolate_forward(step);
  }

  // The state goes on to the next product and to the interpolation, and out.
  void own_backward(CellStep& step) const {
    const std::int64_t h = hidden();
    step.sum_gradients(h, 4);
    interpolate_backward(step);
    step.activation_gradient("tanh", h);
    step.multiply_gradients(h);
    for (int gate = 0; gate < 2; ++gate) step.activation_gradient("sigmoid", h);
    for (int source = 0; source < 2; ++source) step.join("split", Phase::backward_data, {h, h, h});
  }

  void given_forward(std::int64_t in, CellStep& step) const {
    const std::int64_t h = hidden();
    linear_forward(h, 2 * h, step);
    step.add(2 * h);
    step.split("split", Phase::forward, {h, h});
    for (int gate = 0; gate < 2; ++gate) step.activation("sigmoid", h);
    linear_forward(in, h, step);
    step.multiply(h);
    linear_forward(h, h, step);
    step.add(h);
    step.activation("tanh", h);
    interpolate_forward(step);
  }

  // The state goes on to the gates, to the reset state and twice to the interpolation, and out.
  void given_backward(const LayerContext& site, std::int64_t in, CellStep& step) const {
    const std::int64_t h = hidden();
    const bool weights = site.weight_gradient;
    step.sum_gradients(h, 5);
    interpolate_backward(step);
    step.activation_gradient("tanh", h);
    linear_backward(h, h, weights, true, step);
    step.multiply_gradients(h);
    linear_backward(in, h, weights, site.input_gradient, step);
    for (int gate = 0; gate < 2; ++gate) step.activation_gradient("sigmoid", h);
    step.join("split", Phase::backward_data, {h, h});
    linear_backward(h, 2 * h, weights, true, step);
  }

  // A difference, a product, a sum; back, the difference's other sign is a kernel.
  void interpolate_forward(CellStep& step) const {
    step.pointwise("subtract", Phase::forward, hidden(), 1, 2, 1);
    step.multiply(hidden());
    step.add(hidden());
  }
  void interpolate_backward(CellStep& step) const {
    step.multiply_gradients(hidden());
    step.pointwise("negate", Phase::backward_data, hidden(), 1, 1, 1);
  }

  // r, z, n after activation and, where an activation keeps its input, before; n - h; r h or U h + b, for the
  // product with r. The layer that computes the gates reads the same x and keeps it.
  [[nodiscard]] Kept kept_by_step(const LayerContext& site, const Lowering& lowering) const override {
    constexpr std::int64_t kOfFusedCell = 4;  // r, z, n and U h + b
    std::int64_t vectors = given_ || lowering.cell_pointwise == Composition::composite ? 5 : kOfFusedCell;
    if (vectors == 5 && lowering.relu_keeps == ReluKeeps::input_and_output) vectors += 3;
    return {.width = vectors * hidden(), .inputs = site.weight_gradient && !given_, .output = true};
  }

  bool given_ = false;
};

}  // namespace

std::unique_ptr<Layer> make_gru(SpecMap& keys) { return std::make_unique<Gru>(keys); }

}  // namespace tbdsim
