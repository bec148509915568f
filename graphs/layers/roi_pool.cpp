// roi_pool, crop_and_resize: the features of every region as an image of one size, the maximum over each cell
// of a grid or a bilinear sample in each. Only the features have a gradient. With features on several levels
// each region is read from one of them: for each level its regions are selected, sampled and scattered to
// their places (detectron2 and maskrcnn-benchmark, poolers.py: nonzero, index, ROIAlign, index_put).
#include <functional>

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
    if (inputs.size() < 2) require_inputs(inputs, 2);
    const Shape& features = image_input(inputs.first(1));
    for (std::size_t level = 1; level + 1 < inputs.size(); ++level) {
      if (image_input(inputs.subspan(level, 1)).dims[0] != features.dims[0])
        throw ShapeMismatch("levels have shapes " + to_text(features) + " and " + to_text(inputs[level]) +
                            "; expected as many channels of each");
    }
    return {inputs.back().rows, {features.dims[0], size_, size_}};
  }

  void forward(const LayerContext& site, const LoweringContext& how,
               std::vector<Kernel>& kernels) const override {
    each_level(site, [&](const Shape& features, const Shape& images) {
      if (levels(site) > 1) {
        kernels.push_back(read_count());
        kernels.push_back(row_gather(images.rows, kRegionNumbers));
      }
      const Size y = stored_bytes(images, how.precision);
      kernels.push_back(
          memory_kernel(KernelKind::pooling, Phase::forward, sampling_.op, images, sampling_.flops,
                        stored_bytes(features, how.precision) + regions(images), y + indices(images)));
      if (levels(site) > 1) kernels.push_back(image_gather(Phase::forward, images, y));
    });
  }

  // Regions overlap: their gradients are added to a cleared map of the features.
  void backward(const LayerContext& site, const LoweringContext& how,
                std::vector<Kernel>& kernels) const override {
    if (!site.input_gradient) return;
    each_level(site, [&](const Shape& level, const Shape& images) {
      const Size features = stored_bytes(level, how.precision);
      const Size dy = stored_bytes(images, how.precision);
      if (levels(site) > 1) kernels.push_back(image_gather(Phase::backward_data, images, dy));
      kernels.push_back(
          memory_kernel(KernelKind::elementwise, Phase::backward_data, "fill", level, 0, {}, features));
      kernels.push_back(memory_kernel(KernelKind::pooling, Phase::backward_data, sampling_.op, images,
                                      sampling_.flops, dy + indices(images) + regions(images) + features,
                                      features));
    });
  }

  // The regions are read again, too: too few numbers to count.
  [[nodiscard]] BackwardNeeds backward_needs(const LayerContext& site,
                                             const LoweringContext&) const override {
    return {.extra_bytes = site.input_gradient ? indices(site.output) : Size{}};
  }

 private:
  [[nodiscard]] static std::size_t levels(const LayerContext& site) { return site.inputs.size() - 1; }

  // Every level with its images: which regions are read from which level depends on their sizes, here as many
  // from each.
  static void each_level(const LayerContext& site,
                         const std::function<void(const Shape& features, const Shape& images)>& work) {
    const auto count = static_cast<std::int64_t>(levels(site));
    const auto part = [&](std::int64_t all, std::int64_t k) {
      return all * (k + 1) / count - all * k / count;
    };
    for (std::int64_t k = 0; k < count; ++k) {
      const Size& rows = site.output.rows;
      work(site.inputs[static_cast<std::size_t>(k)],
           {{part(rows.fixed, k), part(rows.per_sample, k)}, site.output.dims});
    }
  }

  // A level's images into their places among all, and their gradients back.
  static Kernel image_gather(Phase phase, const Shape& images, const Size& bytes) {
    return memory_kernel(KernelKind::gather, phase, "place_regions", images, 0,
                         bytes + word_bytes(images.rows), bytes);
  }

  [[nodiscard]] Size indices(const Shape& images) const {
    return sampling_.keeps_indices ? word_bytes(elements(images)) : Size{};
  }
  [[nodiscard]] static Size regions(const Shape& images) { return word_bytes(images.rows * kRegionNumbers); }

  Sampling sampling_;
  std::int64_t size_;
};

}  // namespace

std::unique_ptr<Layer> make_roi_pool(SpecMap& keys) { return std::make_unique<RegionImages>(kMaximum, keys); }
std::unique_ptr<Layer> make_crop_and_resize(SpecMap& keys) {
  return std::make_unique<RegionImages>(kBilinear, keys);
}

}  // namespace tbdsim
