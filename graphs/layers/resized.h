// A layer of one input whose output has dimensions that are given.
#pragma once

#include <vector>

#include "graphs/layers/layer_types.h"

namespace tbdsim {

class ResizedLayer : public Layer {
 public:
  explicit ResizedLayer(SpecMap& keys);

  [[nodiscard]] Shape output_shape(std::span<const Shape> inputs) const override;
  [[nodiscard]] BackwardNeeds backward_needs(const LayerContext&, const LoweringContext&) const override {
    return {};
  }

 protected:
  // Throws ShapeMismatch for an input that no output of those dimensions is made of.
  virtual void check(const Shape& input, const Shape& output) const = 0;
  // A copy, or another pass over memory, that reads one shape and writes another.
  static void pass(KernelKind kind, Phase phase, std::string_view op, const Shape& from, const Shape& to,
                   const LoweringContext& how, std::vector<Kernel>& kernels);
  static void zeros(Phase phase, const Shape& shape, const LoweringContext& how,
                    std::vector<Kernel>& kernels);

 private:
  std::vector<std::int64_t> dims_;
};

}  // namespace tbdsim
