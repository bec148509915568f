// What convolutions of every kind but conv2d share: a kernel for each pass, timed as a convolution of images,
// and those of a bias for each filter.
#pragma once

#include "graphs/layer.h"
#include "hwspecs/base/spec_reader.h"

namespace tbdsim {

class BiasedConvolution : public Layer {
 public:
  BiasedConvolution(std::string_view op, std::int64_t filters, bool bias)
      : op_(op), filters_(filters), bias_(bias) {}

  [[nodiscard]] std::vector<ParameterTensor> parameters(std::span<const Shape> inputs) const override;
  void forward(const LayerContext& site, const LoweringContext& how,
               std::vector<Kernel>& kernels) const override;
  void backward(const LayerContext& site, const LoweringContext& how,
                std::vector<Kernel>& kernels) const override;
  [[nodiscard]] BackwardNeeds backward_needs(const LayerContext& site, const LoweringContext&) const override;

 protected:
  [[nodiscard]] std::int64_t filters() const { return filters_; }

 private:
  // Number of weights, for an input of that shape.
  [[nodiscard]] virtual std::int64_t weights(const Shape& input) const = 0;
  // Multiply-adds of one pass.
  [[nodiscard]] virtual Size multiply_adds(const LayerContext& site) const = 0;
  // The convolution of images whose time the forward pass takes.
  [[nodiscard]] virtual ConvShape as_images(const LayerContext& site) const = 0;

  [[nodiscard]] Kernel product(const LayerContext& site, const LoweringContext& how, Phase phase) const;

  std::string_view op_;  // of its kernels; a literal
  std::int64_t filters_;
  bool bias_;
};

// The key `bias`, or what holds without it.
[[nodiscard]] bool has_bias(SpecMap& keys, bool unless);

}  // namespace tbdsim
