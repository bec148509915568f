// depth_to_space: factor^2 channels of a pixel become factor x factor pixels of one channel. TensorFlow 1.3
// has it for NHWC only, so that networks in NCHW transpose around it.
#include "graphs/layers/layer_types.h"
#include "graphs/layers/mirrored_layer.h"

namespace tbdsim {
namespace {

constexpr std::int64_t kLargestFactor = 64;

class DepthToSpace : public MirroredLayer {
 public:
  explicit DepthToSpace(SpecMap& keys) : factor_(keys.at("factor").count(1, kLargestFactor)) {}

  [[nodiscard]] Shape output_shape(std::span<const Shape> inputs) const override {
    const Shape& in = image_input(inputs);
    if (in.dims[0] % (factor_ * factor_) != 0) {
      throw ShapeMismatch("input has " + std::to_string(in.dims[0]) + " channels; expected a multiple of " +
                          std::to_string(factor_ * factor_));
    }
    return {in.rows,
            {in.dims[0] / (factor_ * factor_), checked_multiply(in.dims[1], factor_),
             checked_multiply(in.dims[2], factor_)}};
  }

 private:
  void run(const LayerContext& site, const LoweringContext& how, Phase phase,
           std::vector<Kernel>& kernels) const override {
    const Size x = stored_bytes(site.output, how.precision);
    const auto copy = [&](std::string_view op) {
      kernels.push_back(memory_kernel(KernelKind::transpose, phase, op, site.output, 0, x, x));
    };
    const bool nchw = how.lowering.layout == Layout::nchw;
    if (nchw) copy("nhwc_nchw");
    copy("depth_to_space");
    if (nchw) {
      kernels.back().scratch_bytes = x * 2;  // what goes in and comes out in NHWC
      copy("nhwc_nchw");
    }
  }

  std::int64_t factor_;
};

}  // namespace

std::unique_ptr<Layer> make_depth_to_space(SpecMap& keys) { return std::make_unique<DepthToSpace>(keys); }

}  // namespace tbdsim
