// anchor_target, proposal_target: training targets of anchors and proposals. Boxes are matched with the
// image's objects by their overlap, some are drawn at random, and each gets a class and offsets. No gradient
// flows back.
#include <optional>

#include "graphs/layers/boxes.h"
#include "graphs/layers/layer_types.h"
#include "graphs/layers/transfer.h"

namespace tbdsim {
namespace {

constexpr std::int64_t kMostObjects = 10'000;
constexpr std::int64_t kMostTargets = 1'000'000;
constexpr std::int64_t kMostNumbers = 100;

// On the GPU in tensor operations, on the host, or there and back with proposals that come from the GPU.
enum class Place { device, host, round_trip };
constexpr std::array<std::string_view, 3> kPlaceNames = {"device", "host", "round_trip"};

// Kernels of matching, drawing and encoding: tensor operations of calibrate/runs/models (faster_rcnn.py and
// boxes.py) as PyTorch runs them. Drawing calls nonzero and randperm, for objects and for background: about
// five kernels each (estimate), two of whose results the host waits for.
struct Operations {
  std::int64_t overlap, draw, encode;
};
constexpr Operations kOfAnchors{16, 14 + 4 * 5, 15};
constexpr Operations kOfProposals{16, 10 + 4 * 5, 20};
constexpr int kCountsRead = 2;

class Targets : public Layer {
 public:
  void backward(const LayerContext&, const LoweringContext&, std::vector<Kernel>&) const override {}
  [[nodiscard]] BackwardNeeds backward_needs(const LayerContext&, const LoweringContext&) const override {
    return {};
  }
  [[nodiscard]] bool differentiable() const override { return false; }

  void forward(const LayerContext& site, const LoweringContext&,
               std::vector<Kernel>& kernels) const override {
    if (place_ == Place::device) {
      const Size& boxes = site.inputs[0].rows;
      kernels.push_back(box_arithmetic("box_overlap", boxes, objects_, operations_.overlap));
      const std::int64_t pairs = checked_multiply(boxes.per_sample, most_objects_);
      kernels.back().scratch_bytes = word_bytes(fixed_size(checked_multiply(pairs, pair_numbers_)));
      kernels.push_back(box_arithmetic("box_draw", boxes, 1, operations_.draw));
      const std::int64_t of_image =
          batched_ ? 0 : operations_.overlap + operations_.draw + operations_.encode;
      for (int i = 0; i < kCountsRead; ++i) kernels.push_back(read_count(of_image / kCountsRead));
      kernels.push_back(box_arithmetic("box_encode", site.output.rows, kBoxNumbers, operations_.encode));
      return;
    }
    if (place_ == Place::round_trip) kernels.push_back(device_to_host(elements(site.inputs[0])));
    kernels.push_back(host_to_device(elements(site.output)));
    kernels.back().host_nanoseconds = host_;
  }

 protected:
  Targets(SpecMap& keys, std::span<const std::string_view> places, const Operations& operations)
      : place_(static_cast<Place>(keys.at("on").one_of(places))), operations_(operations) {
    if (place_ == Place::device) {
      if (const auto batched = keys.find("batched")) batched_ = batched->flag();
      objects_ = keys.at("objects").count(1, kMostObjects);
      if (const auto most = keys.find("most_objects")) most_objects_ = most->count(1, kMostObjects);
      if (const auto numbers = keys.find("pair_numbers")) pair_numbers_ = numbers->count(1, kMostNumbers);
    } else {
      host_ = host_nanoseconds(keys);
    }
  }

 private:
  Place place_;
  Operations operations_;
  std::int64_t objects_ = 0;       // in an image
  std::int64_t most_objects_ = 0;  // in one of them; memory is that of the largest
  std::int64_t pair_numbers_ = 0;  // alive at once of each pair of a box and an object; images take turns
  bool batched_ = false;           // all images at once instead of one by one
  Size host_;                      // host time of matching, for each image
};

// A label, four offsets and their weights for every anchor, or for the `samples` of an image drawn.
class AnchorTarget : public Targets {
 public:
  explicit AnchorTarget(SpecMap& keys) : Targets(keys, std::span(kPlaceNames).first(2), kOfAnchors) {
    if (const auto samples = keys.find("samples")) samples_ = samples->count(1, kMostBoxes);
  }

  [[nodiscard]] Shape output_shape(std::span<const Shape> inputs) const override {
    require_inputs(inputs, 1);
    return {samples_ ? Size{0, *samples_} : inputs[0].rows, {1 + 2 * kBoxNumbers}};
  }

 private:
  std::optional<std::int64_t> samples_;
};

// The regions drawn, each with its label, offsets and their weights.
class ProposalTarget : public Targets {
 public:
  explicit ProposalTarget(SpecMap& keys)
      : Targets(keys, kPlaceNames, kOfProposals),
        regions_(keys.at("regions").count(1, kMostBoxes)),
        offsets_(keys.at("offsets").count(kBoxNumbers, kMostTargets)) {}

  [[nodiscard]] Shape output_shape(std::span<const Shape> inputs) const override {
    require_inputs(inputs, 1);
    return {{0, regions_}, {kRegionNumbers + 1 + 2 * offsets_}};
  }

 private:
  std::int64_t regions_;  // of an image
  std::int64_t offsets_;  // of a region: four, or four for each class
};

}  // namespace

std::unique_ptr<Layer> make_anchor_target(SpecMap& keys) { return std::make_unique<AnchorTarget>(keys); }
std::unique_ptr<Layer> make_proposal_target(SpecMap& keys) { return std::make_unique<ProposalTarget>(keys); }

}  // namespace tbdsim
