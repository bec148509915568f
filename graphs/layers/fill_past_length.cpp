// fill_past_length: zero behind the end of each sample, in a tensor padded to the longest. The host makes a
// mask of a byte for each number and sends it, a kernel fills where it is set, the gradient likewise
// (SeanNaren/deepspeech.pytorch, model.py MaskConv). `host_time`: of the host's work on the mask of a sample.
// Samples of one length have nothing to fill, but a mask all the same.
#include "graphs/layers/layer_types.h"
#include "graphs/layers/transfer.h"

namespace tbdsim {
namespace {

class FillPastLength : public Layer {
 public:
  explicit FillPastLength(SpecMap& keys) : host_(host_nanoseconds(keys)) {}

  [[nodiscard]] Shape output_shape(std::span<const Shape> inputs) const override {
    require_inputs(inputs, 1);
    return inputs[0];
  }
  void forward(const LayerContext& site, const LoweringContext& how,
               std::vector<Kernel>& kernels) const override {
    kernels.push_back(host_to_device(elements(site.output), kMaskBytes));
    kernels.back().host_nanoseconds = host_;
    fill(site, how, Phase::forward, kernels);
  }
  void backward(const LayerContext& site, const LoweringContext& how,
                std::vector<Kernel>& kernels) const override {
    if (site.input_gradient) fill(site, how, Phase::backward_data, kernels);
  }
  [[nodiscard]] BackwardNeeds backward_needs(const LayerContext& site,
                                             const LoweringContext&) const override {
    return {.extra_bytes = site.input_gradient ? mask(site) : Size{}};
  }

 private:
  static constexpr std::int64_t kMaskBytes = 1;  // of a number's

  static Size mask(const LayerContext& site) { return elements(site.output) * kMaskBytes; }
  static void fill(const LayerContext& site, const LoweringContext& how, Phase phase,
                   std::vector<Kernel>& kernels) {
    const Size x = stored_bytes(site.output, how.precision);
    kernels.push_back(
        memory_kernel(KernelKind::elementwise, phase, "masked_fill", site.output, 1, x + mask(site), x));
  }

  Size host_;
};

}  // namespace

std::unique_ptr<Layer> make_fill_past_length(SpecMap& keys) { return std::make_unique<FillPastLength>(keys); }

}  // namespace tbdsim
