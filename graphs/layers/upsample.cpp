// upsample: every pixel becomes a square of factor x factor pixels, or the image one of `outputs`, each as it
// (nearest), whose gradients are added up, or between it and its neighbours (bilinear): weighted sums of
// four, whose gradients are added to a gradient of zeros.
#include "graphs/layers/layer_types.h"

namespace tbdsim {
namespace {

constexpr std::int64_t kLargestFactor = 64;
constexpr std::int64_t kBilinearPixels = 4;
constexpr std::int64_t kBilinearFlops = 2 * kBilinearPixels - 1;  // products and sums

class Upsample : public Layer {
 public:
  explicit Upsample(SpecMap& keys) {
    if (const auto outputs = keys.find("outputs")) {
      for (const SpecNode& side : outputs->list()) outputs_.push_back(side.count(1, kLargestDimension));
      if (outputs_.size() != 2)
        outputs->fail("has " + std::to_string(outputs_.size()) +
                      " numbers; expected 2, a height and a width");
    } else {
      factor_ = keys.at("factor").count(1, kLargestFactor);
    }
    if (const auto mode = keys.find("mode")) bilinear_ = mode->one_of({"nearest", "bilinear"}) == 1;
  }

  [[nodiscard]] Shape output_shape(std::span<const Shape> inputs) const override {
    const Shape& in = image_input(inputs);
    if (!outputs_.empty()) return {in.rows, {in.dims[0], outputs_[0], outputs_[1]}};
    return {in.rows,
            {in.dims[0], checked_multiply(in.dims[1], factor_), checked_multiply(in.dims[2], factor_)}};
  }

  void forward(const LayerContext& site, const LoweringContext& how,
               std::vector<Kernel>& kernels) const override {
    add(site, Phase::forward, bilinear_ ? kBilinearFlops : 0, stored_bytes(site.inputs[0], how.precision),
        stored_bytes(site.output, how.precision), kernels);
  }
  void backward(const LayerContext& site, const LoweringContext& how,
                std::vector<Kernel>& kernels) const override {
    if (!site.input_gradient) return;
    const Size x = stored_bytes(site.inputs[0], how.precision);
    if (bilinear_) {
      kernels.push_back(
          memory_kernel(KernelKind::elementwise, Phase::backward_data, "fill", site.inputs[0], 0, {}, x));
    }
    const Size y = stored_bytes(site.output, how.precision);
    add(site, Phase::backward_data, bilinear_ ? 2 * kBilinearPixels : 1, bilinear_ ? x + y : y, x, kernels);
  }
  [[nodiscard]] BackwardNeeds backward_needs(const LayerContext&, const LoweringContext&) const override {
    return {};
  }

 private:
  static void add(const LayerContext& site, Phase phase, std::int64_t flops, Size read, Size written,
                  std::vector<Kernel>& kernels) {
    kernels.push_back(
        memory_kernel(KernelKind::elementwise, phase, "upsample", site.output, flops, read, written));
  }

  std::int64_t factor_ = 1;
  std::vector<std::int64_t> outputs_;  // height and width where they are given
  bool bilinear_ = false;
};

}  // namespace

std::unique_ptr<Layer> make_upsample(SpecMap& keys) { return std::make_unique<Upsample>(keys); }

}  // namespace tbdsim
