// channel_add: an image plus a number for each of its channels, {channels, height, width} and {channels}, as
// the embedding of the time step in a diffusion network; or positions plus a number for each of their
// features, {positions, features} and {features}. The numbers' gradient is a sum over pixels or positions.
#include "graphs/layers/layer_types.h"

namespace tbdsim {
namespace {

class ChannelAdd : public Layer {
 public:
  [[nodiscard]] Shape output_shape(std::span<const Shape> inputs) const override {
    require_inputs(inputs, 2);
    require_same_rows(inputs);
    const Shape& x = inputs[0];
    const bool positions = x.dims.size() == 2;
    const std::int64_t channels = positions ? x.dims[1] : image_input(inputs.first(1)).dims[0];
    if (inputs[1].dims.size() != 1 || inputs[1].dims[0] != channels) {
      throw ShapeMismatch("inputs have shapes " + to_text(x) + " and " + to_text(inputs[1]) +
                          "; expected a number for each channel in the second");
    }
    return x;
  }

  void forward(const LayerContext& site, const LoweringContext& how,
               std::vector<Kernel>& kernels) const override {
    const Size x = stored_bytes(site.output, how.precision);
    const Size added = stored_bytes(site.inputs[1], how.precision);
    kernels.push_back(
        memory_kernel(KernelKind::elementwise, Phase::forward, "add", site.output, 1, x + added, x));
  }
  void backward(const LayerContext& site, const LoweringContext& how,
                std::vector<Kernel>& kernels) const override {
    if (!site.input_gradient) return;
    kernels.push_back(memory_kernel(KernelKind::reduction, Phase::backward_data, "sum", site.output, 1,
                                    stored_bytes(site.output, how.precision),
                                    stored_bytes(site.inputs[1], how.precision)));
  }
  [[nodiscard]] BackwardNeeds backward_needs(const LayerContext&, const LoweringContext&) const override {
    return {};
  }
};

}  // namespace

std::unique_ptr<Layer> make_channel_add(SpecMap&) { return std::make_unique<ChannelAdd>(); }

}  // namespace tbdsim
