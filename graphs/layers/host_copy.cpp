// host_copy: a tensor goes over the bus, to the device (data that is fed) or to the host (results that are
// fetched). `host_time`: time of the host's work for each sample before it sends data, or after it has
// received it. `targets: true`: a loss reads them, no layer.
#include <array>

#include "graphs/layers/layer_types.h"
#include "graphs/layers/transfer.h"

namespace tbdsim {
namespace {

constexpr std::array<std::string_view, 2> kTo = {"device", "host"};
constexpr std::int64_t kMostBytes = 8;

class HostCopy : public Layer {
 public:
  explicit HostCopy(SpecMap& keys) : to_(keys.at("to").one_of(kTo)) {
    if (const auto bytes = keys.find("element_bytes")) element_bytes_ = bytes->count(1, kMostBytes);
    if (const auto targets = keys.find("targets")) targets_ = targets->flag();
    host_ = host_nanoseconds(keys);
  }

  [[nodiscard]] Shape output_shape(std::span<const Shape> inputs) const override {
    require_inputs(inputs, 1);
    return inputs[0];
  }

  void forward(const LayerContext& site, const LoweringContext&,
               std::vector<Kernel>& kernels) const override {
    const auto copy = kTo[to_] == "device" ? host_to_device : device_to_host;
    kernels.push_back(copy(elements(site.output), element_bytes_));
    kernels.back().host_nanoseconds = host_;
  }
  void backward(const LayerContext&, const LoweringContext&, std::vector<Kernel>&) const override {}
  [[nodiscard]] BackwardNeeds backward_needs(const LayerContext&, const LoweringContext&) const override {
    return {};
  }
  [[nodiscard]] bool differentiable() const override { return false; }
  [[nodiscard]] bool is_loss() const override { return targets_ || kTo[to_] == "host"; }

 private:
  std::size_t to_;
  std::int64_t element_bytes_ = kFp32Bytes;
  bool targets_ = false;
  Size host_;
};

}  // namespace

std::unique_ptr<Layer> make_host_copy(SpecMap& keys) { return std::make_unique<HostCopy>(keys); }

}  // namespace tbdsim
