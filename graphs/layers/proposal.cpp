// proposal: regions that may hold an object, from the scores and offsets of all anchors. The `before` best
// boxes compete: of boxes that overlap only the best is kept; the `after` best of these are the output. No
// gradient flows back.
#include <algorithm>
#include <optional>

#include "graphs/layers/boxes.h"
#include "graphs/layers/layer_types.h"
#include "graphs/layers/transfer.h"

namespace tbdsim {
namespace {

// Where non-maximum suppression chooses: by kernels; on the host, from a mask of overlaps that kernels
// computed (MXNet's contrib.Proposal); or all of it on the host, which keeps the proposals.
enum class Suppression { device, mask_to_host, host };
constexpr std::array<std::string_view, 3> kSuppressionNames = {"device", "mask_to_host", "host"};

constexpr std::int64_t kMostScores = 2;     // of an anchor: background and object, or of the object alone
constexpr std::int64_t kLogisticFlops = 3;  // exponential, sum, reciprocal
// Offsets to boxes within the image: tensor operations of boxes.decode and boxes.clip in
// calibrate/runs/models; kernels of MXNet's operator (anchors, boxes, those too small, scores).
constexpr std::int64_t kTensorOperations = 15;
constexpr std::int64_t kOperatorKernels = 4;
// A radix sort of 32-bit keys takes 8 bits at a time (estimate: CUB's; older ones took 5 to 7).
constexpr std::int64_t kSortPasses = 4;
constexpr std::int64_t kOverlapFlops = 24;  // of a pair: borders 4, sizes 6, areas 1 + 10, ratio 3
constexpr std::int64_t kMaskBits = 64;      // of a word: one for each box that another may suppress
constexpr std::int64_t kMaskWords = 2;      // of 32 bits

class Proposal : public Layer {
 public:
  explicit Proposal(SpecMap& keys)
      : after_(keys.at("after").count(1, kMostBoxes)),
        suppression_(static_cast<Suppression>(keys.at("suppression").one_of(kSuppressionNames))) {
    if (const auto before = keys.find("before")) before_ = before->count(1, kMostBoxes);
    if (suppression_ != Suppression::device) host_ = host_nanoseconds(keys);
    if (const auto batched = keys.find("batched")) batched_ = batched->flag();
  }

  [[nodiscard]] Shape output_shape(std::span<const Shape> inputs) const override {
    require_inputs(inputs, 2);
    require_same_rows(inputs);
    if (inputs[0].rows.fixed != 0)
      throw ShapeMismatch("inputs have rows that no sample has; expected anchors of each image");
    const Shape offsets{inputs[0].rows, {kBoxNumbers}};
    if (inputs[0].dims.size() != 1 || inputs[0].dims[0] > kMostScores || inputs[1] != offsets) {
      throw ShapeMismatch("inputs have shapes " + to_text(inputs[0]) + " and " + to_text(inputs[1]) +
                          "; expected one or two scores and four offsets for each of the same anchors");
    }
    return {{0, std::min(after_, competing(inputs))}, {kRegionNumbers}};
  }

  void forward(const LayerContext& site, const LoweringContext& how,
               std::vector<Kernel>& kernels) const override {
    const Size& anchors = site.inputs[0].rows;
    const Size scores = stored_bytes(site.inputs[0], how.precision);
    if (site.inputs[0].dims[0] == 1) {
      kernels.push_back(memory_kernel(KernelKind::elementwise, Phase::forward, "sigmoid", site.inputs[0],
                                      kLogisticFlops, scores, scores));
    } else {
      kernels.push_back(memory_kernel(KernelKind::softmax, Phase::forward, "softmax", site.inputs[0],
                                      kSoftmaxFlops, scores, scores));
      kernels.back().shape = position_matrix(site.inputs[0]);
    }
    kernels.push_back(
        box_arithmetic("box_decode", anchors, kBoxNumbers,
                       suppression_ == Suppression::mask_to_host ? kOperatorKernels : kTensorOperations));
    if (suppression_ == Suppression::host) {
      kernels.push_back(device_to_host(anchors * (kBoxNumbers + 1)));
      kernels.back().host_nanoseconds = host_;
      return;
    }
    const std::int64_t boxes = competing(site.inputs);
    kernels.push_back(sort(anchors));
    kernels.push_back(row_gather({0, boxes}, kRegionNumbers));
    suppress(boxes, kernels);
    kernels.push_back(row_gather(site.output.rows, kRegionNumbers));
  }

  void backward(const LayerContext&, const LoweringContext&, std::vector<Kernel>&) const override {}
  [[nodiscard]] BackwardNeeds backward_needs(const LayerContext&, const LoweringContext&) const override {
    return {};
  }
  [[nodiscard]] bool differentiable() const override { return false; }

 private:
  // Boxes of an image that take part in the suppression.
  [[nodiscard]] std::int64_t competing(std::span<const Shape> inputs) const {
    const std::int64_t anchors = inputs[0].rows.per_sample;
    return before_ ? std::min(*before_, anchors) : anchors;
  }

  // Each pass counts the keys of every digit, then moves keys and indices to their places.
  static Kernel sort(const Size& keys) {
    Kernel kernel = memory_kernel(KernelKind::gather, Phase::forward, "radix_sort", {keys, {}}, 0,
                                  word_bytes(keys * 3), word_bytes(keys * 2));
    kernel.repeat = kSortPasses;
    return kernel;
  }

  // A bit for every pair of boxes that overlap, then one walk over the boxes from the best down.
  void suppress(std::int64_t boxes, std::vector<Kernel>& kernels) const {
    const Size all{0, boxes};
    const Size mask = all * ((boxes + kMaskBits - 1) / kMaskBits) * kMaskWords;
    Kernel overlaps = memory_kernel(KernelKind::elementwise, Phase::forward, "nms", {all, {boxes}},
                                    kOverlapFlops, word_bytes(all * kRegionNumbers), word_bytes(mask));
    overlaps.scratch_bytes = word_bytes(fixed_size(mask.per_sample));  // images take turns
    if (suppression_ == Suppression::mask_to_host) {
      kernels.push_back(overlaps);
      kernels.push_back(device_to_host(mask));
      kernels.back().host_nanoseconds = host_;
      kernels.push_back(host_to_device(all));  // indices of the boxes kept
      return;
    }
    // torchvision computes a pair once, not in both orders.
    overlaps.flops = all * checked_multiply(boxes, kOverlapFlops / 2);
    kernels.push_back(overlaps);
    kernels.push_back(memory_kernel(KernelKind::reduction, Phase::forward, "nms_choice", {mask, {}}, 1,
                                    word_bytes(mask), word_bytes(all)));
    // torchvision's thread block waits for the mask of one box after another; batched ones were not timed.
    if (!batched_) {
      kernels.back().shape = MatrixShape{all, boxes};
      kernels.back().thread_per_row = true;
    }
    kernels.push_back(read_count(batched_ ? 0 : kTensorOperations));
  }

  std::int64_t after_;
  std::optional<std::int64_t> before_;
  Suppression suppression_;
  bool batched_ = false;  // all images at once instead of one by one
  Size host_;             // host time of suppression, for each image
};

}  // namespace

std::unique_ptr<Layer> make_proposal(SpecMap& keys) { return std::make_unique<Proposal>(keys); }

}  // namespace tbdsim
