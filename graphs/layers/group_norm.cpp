// group_norm: y = gamma * (x - mean) / sqrt(var + eps) + beta, mean and variance over the pixels and channels
// of a sample's group (Wu and He, ECCV 2018). instance_norm: each channel is a group, by default without
// gamma and beta (Ulyanov et al., 2016).
//
// Group norm has a kernel for the moments and one for y, backward one for the sums over a group and one for
// dx, and small ones over channels (PyTorch, aten/src/ATen/native/cuda/group_norm_kernel.cu). joined: one
// kernel forward and one backward, which hold a group on the GPU (apex.contrib.group_norm); silu: these also
// apply it and its gradient, and y is their result. Instance norm is a batch norm of one sample with as many
// channels as samples have (aten/src/ATen/native/Normalization.cpp).
#include "graphs/group_moments.h"
#include "graphs/layers/layer_types.h"
#include "graphs/layers/loads_rows.h"

namespace tbdsim {
namespace {

constexpr std::int64_t kMostGroups = 1'000'000;
// Operations on each element: sum and squared deviation (3); scale and shift (2). Backward: sums of dy and of
// dy * x (3); dx = a * dy + b * x + c (4).
constexpr std::int64_t kMomentFlops = 3;
constexpr std::int64_t kApplyFlops = 2;
constexpr std::int64_t kSumFlops = 3;
constexpr std::int64_t kGradientFlops = 4;

// Channels of an image or of a volume.
const Shape& pixels_input(std::span<const Shape> inputs) {
  require_inputs(inputs, 1);
  if (inputs[0].dims.size() < 3)
    throw ShapeMismatch("input has shape " + to_text(inputs[0]) +
                        "; expected channels x height x width, or channels x depth x height x width");
  return inputs[0];
}

class GroupNorm : public Layer {
 public:
  // `groups`: 0: as many as channels.
  // `joined`, `silu`: as the keys of group_norm.
  GroupNorm(std::int64_t groups, bool affine, bool joined = false, bool silu = false)
      : groups_(groups), affine_(affine), joined_(joined), silu_(silu) {}

  [[nodiscard]] Shape output_shape(std::span<const Shape> inputs) const override {
    const Shape& in = of_channels() ? pixels_input(inputs) : image_input(inputs);
    if (groups_ > 0 && in.dims[0] % groups_ != 0) {
      throw ShapeMismatch("input has " + std::to_string(in.dims[0]) + " channels, which " +
                          std::to_string(groups_) +
                          " groups do not divide; expected a multiple of the groups");
    }
    return in;
  }

  [[nodiscard]] std::vector<ParameterTensor> parameters(std::span<const Shape> inputs) const override {
    if (!affine_) return {};
    return {{"gamma", inputs[0].dims[0]}, {"beta", inputs[0].dims[0]}};
  }

  void forward(const LayerContext& site, const LoweringContext& how,
               std::vector<Kernel>& kernels) const override {
    const Size x = stored_bytes(site.output, how.precision);
    if (of_channels()) {
      instance_norm(site, how, Phase::forward, kMomentFlops + kApplyFlops, x * 2, x, kernels);
      return;
    }
    if (joined_) {
      add(KernelKind::elementwise, "group_norm", site.output, Phase::forward,
          kMomentFlops + kApplyFlops + activation_flops(), x, x, kernels);
      return;
    }
    const Size statistics = group_count(site) * (2 * kFp32Bytes);
    const Size factors = channel_count(site) * (2 * kFp32Bytes);
    add(KernelKind::reduction, "group_moments", site.output, Phase::forward, kMomentFlops, x, statistics,
        kernels);
    as_moments_of_groups(kernels.back(), elements_per_row(site.output) / groups_);
    add_small("group_factors", site, Phase::forward, statistics, factors, kernels);
    add(KernelKind::elementwise, "group_norm", site.output, Phase::forward, kApplyFlops, x + factors, x,
        kernels);
    mark(how, kernels.back());
  }

  void backward(const LayerContext& site, const LoweringContext& how,
                std::vector<Kernel>& kernels) const override {
    const Size x = stored_bytes(site.output, how.precision);
    const Phase phase = site.input_gradient ? Phase::backward_data : Phase::backward_weights;
    if (of_channels()) {
      const bool all = site.input_gradient;
      instance_norm(site, how, phase, all ? kSumFlops + kGradientFlops : kSumFlops, all ? x * 4 : x * 2,
                    all ? x : Size{}, kernels);
      return;
    }
    const Size sums = channel_count(site) * (2 * kFp32Bytes);
    if (joined_) {
      add(KernelKind::elementwise, "group_norm", site.output, phase,
          kSumFlops + kGradientFlops + activation_flops(), x * 2, site.input_gradient ? x + sums : sums,
          kernels);
      return;
    }
    add(KernelKind::reduction, "group_sums", site.output, phase, kSumFlops, x * 2, sums, kernels);
    if (site.input_gradient) {
      add_small("group_factors", site, phase, sums, sums, kernels);
      add(KernelKind::elementwise, "group_norm", site.output, phase, kGradientFlops, x * 2 + sums, x,
          kernels);
      mark(how, kernels.back());
    }
    if (site.weight_gradient)
      add_small("group_weights", site, Phase::backward_weights, sums,
                fixed_size(checked_multiply(site.output.dims[0], 2 * kFp32Bytes)), kernels);
  }

  [[nodiscard]] BackwardNeeds backward_needs(const LayerContext& site,
                                             const LoweringContext&) const override {
    return {.inputs = true, .extra_bytes = group_count(site) * (2 * kFp32Bytes)};
  }

 private:
  [[nodiscard]] bool of_channels() const { return groups_ == 0; }
  [[nodiscard]] Size group_count(const LayerContext& site) const {
    return site.output.rows * (of_channels() ? site.output.dims[0] : groups_);
  }
  [[nodiscard]] static Size channel_count(const LayerContext& site) {
    return site.output.rows * site.output.dims[0];
  }

  // Operations of SiLU, or of its gradient, for each element.
  [[nodiscard]] std::int64_t activation_flops() const { return silu_ ? 4 : 0; }

  static void add(KernelKind kind, std::string_view op, const Shape& shape, Phase phase, std::int64_t flops,
                  Size read, Size written, std::vector<Kernel>& kernels) {
    kernels.push_back(memory_kernel(kind, phase, op, shape, flops, read, written));
  }
  // PyTorch's kernel of the result takes numbers one at a time: factors of channels are smaller operands.
  static void mark(const LoweringContext& how, Kernel& kernel) {
    if (how.lowering.aten_kernels) kernel.access = Access::elements;
  }
  // Over two numbers for each channel of a sample.
  static void add_small(std::string_view op, const LayerContext& site, Phase phase, Size read, Size written,
                        std::vector<Kernel>& kernels) {
    add(KernelKind::elementwise, op, {channel_count(site), {}}, phase, 2, read, written, kernels);
  }
  static void instance_norm(const LayerContext& site, const LoweringContext& how, Phase phase,
                            std::int64_t flops, Size read, Size written, std::vector<Kernel>& kernels) {
    add(KernelKind::batch_norm, "instance_norm", site.output, phase, flops, read, written, kernels);
    const std::int64_t width = site.output.dims.back();
    const std::int64_t height = elements_per_row(site.output) / site.output.dims[0] / width;
    kernels.back().shape = ImageShape{site.output.rows, site.output.dims[0], height, width};
    if (loads_rows(how)) kernels.back().timed_as = KernelKind::elementwise;
  }

  std::int64_t groups_;
  bool affine_;
  bool joined_;
  bool silu_;
};

bool flag_of(SpecMap& keys, std::string_view name, bool otherwise) {
  const auto node = keys.find(name);
  return node ? node->flag() : otherwise;
}

}  // namespace

std::unique_ptr<Layer> make_group_norm(SpecMap& keys) {
  const std::int64_t groups = keys.at("groups").count(1, kMostGroups);
  const bool joined = flag_of(keys, "joined", false);
  const bool silu = flag_of(keys, "silu", false);
  if (silu && !joined) keys.at("silu").fail("is true without joined: true; expected both");
  return std::make_unique<GroupNorm>(groups, flag_of(keys, "affine", true), joined, silu);
}
std::unique_ptr<Layer> make_instance_norm(SpecMap& keys) {
  return std::make_unique<GroupNorm>(0, flag_of(keys, "affine", false));
}

}  // namespace tbdsim
