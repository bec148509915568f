// roi_pool, crop_and_resize: the features of every region as an image of one size, the maximum over each
// cell of a grid or a bilinear sample in each. Only the features get a gradient.
#include "graphs/layers/boxes.h"
#include "graphs/layers/layer_types.h"

namespace tbdsim {
namespace {

constexpr std::int64_t kMostPixels = 1'000;

struct Sampling {
  std::string_view op;
  std::int64_t flops;  // for each output
  bool keeps_indices;  // where each maximum came from
};

// A cell's borders are rounded outwards: even in a region of as many pixels as cells it has 2x2.
constexpr Sampling kMaximum{"roi_pool", 4, true};
// Three interpolations of a difference, a product and a sum.
constexpr Sampling kBilinear{"crop_and_resize", 9, false};

class RegionImages : public Layer {
 public:
  RegionImages(const Sampling& sampling, SpecMap& keys)
      : sampling_(sampling), size_(keys.at("size").count(1, kMostPixels)) {}

  [[nodiscard]] Shape output_shape(std::span<const Shape> inputs) const override {
    require_inputs(inputs, 2);
    const Shape& features = image_input(inputs.first(1));
    return {inputs[1].rows, {features.dims[0], size_, size_}};
  }

  void forward(const LayerSite& site, const Expansion& how, std::vector<Kernel>& kernels) const override {
    const Size features = stored_bytes(site.inputs[0], how.precision);
    const Size y = stored_bytes(site.output, how.precision);
    kernels.push_back(memory_kernel(KernelKind::pooling, Phase::forward, sampling_.op, site.output,
                                    sampling_.flops, features + regions(site), y + indices(site)));
  }

  // Regions overlap: their gradients are added to a cleared map of the features.
  void backward(const LayerSite& site, const Expansion& how, std::vector<Kernel>& kernels) const override {
    if (!site.input_gradient) return;
    const Size features = stored_bytes(site.inputs[0], how.precision);
    const Size dy = stored_bytes(site.output, how.precision);
    kernels.push_back(memory_kernel(KernelKind::elementwise, Phase::backward_data, "fill", site.inputs[0], 0,
                                    {}, features));
    kernels.push_back(memory_kernel(KernelKind::pooling, Phase::backward_data, sampling_.op, site.output,
                                    sampling_.flops, dy + indices(site) + regions(site) + features,
                                    features));
  }

  // The regions are read again, too: too few numbers to count.
  [[nodiscard]] BackwardNeeds backward_needs(const LayerSite& site, const Expansion&) const override {
    return {.extra_bytes = site.input_gradient ? indices(site) : Size{}};
  }

 private:
  [[nodiscard]] Size indices(const LayerSite& site) const {
    return sampling_.keeps_indices ? word_bytes(elements(site.output)) : Size{};
  }
  [[nodiscard]] static Size regions(const LayerSite& site) {
    return word_bytes(site.output.rows * kRegionNumbers);
  }

  Sampling sampling_;
  std::int64_t size_;
};

}  // namespace

std::unique_ptr<Layer> make_roi_pool(SpecMap& keys) { return std::make_unique<RegionImages>(kMaximum, keys); }
std::unique_ptr<Layer> make_crop_and_resize(SpecMap& keys) {
  return std::make_unique<RegionImages>(kBilinear, keys);
}

}  // namespace tbdsim
