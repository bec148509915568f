// Layers that multiply images or volumes by weights and may add a bias for each channel: the kernels that
// they have in common.
#pragma once

#include "graphs/layers/bias.h"

namespace tbdsim {

class BiasedProduct : public Layer {
 public:
  [[nodiscard]] std::vector<ParameterTensor> parameters(std::span<const Shape> inputs) const override {
    std::vector<ParameterTensor> tensors{{"weight", weights(inputs), true, true}};
    if (bias_) tensors.push_back({"bias", filters_, true, true});
    return tensors;
  }

  void forward(const LayerContext& site, const LoweringContext& how,
               std::vector<Kernel>& kernels) const override {
    kernels.push_back(product(site, how.precision, Phase::forward));
    if (bias_) kernels.push_back(bias_add(site, how, channel_matrix(site.output)));
  }

  void backward(const LayerContext& site, const LoweringContext& how,
                std::vector<Kernel>& kernels) const override {
    if (site.weight_gradient) {
      if (bias_) kernels.push_back(bias_gradient(site, how.precision, filters_, channel_matrix(site.output)));
      kernels.push_back(product(site, how.precision, Phase::backward_weights));
    }
    if (site.input_gradient) kernels.push_back(product(site, how.precision, Phase::backward_data));
  }

  [[nodiscard]] BackwardNeeds backward_needs(const LayerContext& site,
                                             const LoweringContext&) const override {
    return {.inputs = site.weight_gradient};
  }

 protected:
  // The product as a convolution of images that is timed in its place, and its multiply-adds.
  struct Product {
    std::string_view op;
    Size macs;
    ConvShape shape;
  };

  BiasedProduct(std::int64_t filters, bool bias) : filters_(filters), bias_(bias) {}

  // Number of weights, whatever the batch. Throws ShapeMismatch for inputs that it does not take.
  [[nodiscard]] virtual std::int64_t weights(std::span<const Shape> inputs) const = 0;
  [[nodiscard]] virtual Product product_of(const LayerContext& site) const = 0;

  [[nodiscard]] std::int64_t filters() const { return filters_; }

 private:
  [[nodiscard]] Kernel product(const LayerContext& site, const Precision& precision, Phase phase) const {
    const Size x = stored_bytes(site.inputs[0], precision);
    const Size y = stored_bytes(site.output, precision);
    const Size w = fixed_size(checked_multiply(weights(site.inputs), precision.storage_bytes));
    const Product of = product_of(site);
    Kernel kernel;
    kernel.kind = KernelKind::convolution;
    kernel.op = of.op;
    kernel.phase = phase;
    kernel.math = precision.math;
    kernel.macs = of.macs;
    kernel.flops = of.macs * 2;
    kernel.read_bytes = phase == Phase::forward ? x + w : phase == Phase::backward_data ? y + w : x + y;
    kernel.written_bytes = phase == Phase::forward ? y : phase == Phase::backward_data ? x : w;
    kernel.shape = of.shape;
    return kernel;
  }

  std::int64_t filters_;
  bool bias_;
};

}  // namespace tbdsim
