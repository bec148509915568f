// A layer of one input whose gradient takes the same kernels as the output.
#pragma once

#include <vector>

#include "graphs/layers/layer_types.h"

namespace tbdsim {

class MirroredLayer : public Layer {
 public:
  void forward(const LayerContext& site, const LoweringContext& how,
               std::vector<Kernel>& kernels) const override {
    run(site, how, Phase::forward, kernels);
  }
  void backward(const LayerContext& site, const LoweringContext& how,
                std::vector<Kernel>& kernels) const override {
    if (site.input_gradient) run(site, how, Phase::backward_data, kernels);
  }
  [[nodiscard]] BackwardNeeds backward_needs(const LayerContext&, const LoweringContext&) const override {
    return {};
  }

 protected:
  // Appends the kernels of one phase: forward, or of the input's gradient.
  virtual void run(const LayerContext& site, const LoweringContext& how, Phase phase,
                   std::vector<Kernel>& kernels) const = 0;
};

}  // namespace tbdsim
