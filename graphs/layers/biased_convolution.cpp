#include "graphs/layers/biased_convolution.h"

#include "graphs/layers/bias.h"

namespace tbdsim {

std::vector<ParameterTensor> BiasedConvolution::parameters(std::span<const Shape> inputs) const {
  std::vector<ParameterTensor> tensors{{"weight", weights(inputs[0]), true, true}};
  if (bias_) tensors.push_back({"bias", filters_, true, true});
  return tensors;
}

void BiasedConvolution::forward(const LayerContext& site, const LoweringContext& how,
                                std::vector<Kernel>& kernels) const {
  kernels.push_back(product(site, how, Phase::forward));
  if (bias_) kernels.push_back(bias_add(site, how.precision, channel_matrix(site.output)));
}

void BiasedConvolution::backward(const LayerContext& site, const LoweringContext& how,
                                 std::vector<Kernel>& kernels) const {
  if (site.weight_gradient) {
    if (bias_) kernels.push_back(bias_gradient(site, how.precision, filters_, channel_matrix(site.output)));
    kernels.push_back(product(site, how, Phase::backward_weights));
  }
  if (site.input_gradient) kernels.push_back(product(site, how, Phase::backward_data));
}

BackwardNeeds BiasedConvolution::backward_needs(const LayerContext& site, const LoweringContext&) const {
  return {.inputs = site.weight_gradient};
}

Kernel BiasedConvolution::product(const LayerContext& site, const LoweringContext& how, Phase phase) const {
  const Size x = stored_bytes(site.inputs[0], how.precision);
  const Size y = stored_bytes(site.output, how.precision);
  const Size w = fixed_size(checked_multiply(weights(site.inputs[0]), how.precision.storage_bytes));
  Kernel kernel;
  kernel.kind = KernelKind::convolution;
  kernel.op = op_;
  kernel.phase = phase;
  kernel.math = how.precision.math;
  kernel.macs = multiply_adds(site);
  kernel.flops = kernel.macs * 2;
  kernel.read_bytes = phase == Phase::forward ? x + w : phase == Phase::backward_data ? y + w : x + y;
  kernel.written_bytes = phase == Phase::forward ? y : phase == Phase::backward_data ? x : w;
  kernel.shape = as_images(site);
  return kernel;
}

bool has_bias(SpecMap& keys, bool unless) {
  const auto bias = keys.find("bias");
  return bias ? bias->flag() : unless;
}

}  // namespace tbdsim
