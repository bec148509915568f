// One node of an ONNX graph that computes with constants and shapes alone.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "simulate/import/onnx_conversion.h"
#include "simulate/import/onnx_values.h"

namespace tbdsim {

struct Folding {
  OnnxConversion& net;
  const OnnxNode& node;

  [[nodiscard]] const OnnxTensor* in(std::size_t i) const { return net.constant(node, i); }
  // Sides of an input, constant or computed.
  [[nodiscard]] std::optional<Dims> dims(std::size_t i) const;
  // Whether the result is made of floating-point numbers, whose division leaves no whole ones.
  [[nodiscard]] bool is_real() const;
  // Sets an output of those sides, with values where there is one for each element. Returns false for sides
  // that no tensor has.
  [[nodiscard]] bool done(Dims dims, std::vector<double> values = {}, std::size_t output = 0) const;

  // Each sets the outputs of its operators, and returns false where it cannot follow them.
  [[nodiscard]] bool shape() const;
  [[nodiscard]] bool gather() const;
  [[nodiscard]] bool slice() const;
  [[nodiscard]] bool concat() const;
  [[nodiscard]] bool squeeze() const;
  [[nodiscard]] bool reshape() const;
  [[nodiscard]] bool flatten() const;
  [[nodiscard]] bool transpose() const;
  [[nodiscard]] bool split() const;
  [[nodiscard]] bool elementwise() const;
  [[nodiscard]] bool filled() const;
  [[nodiscard]] bool range() const;
  [[nodiscard]] bool reduced() const;
  [[nodiscard]] bool cast() const;
  [[nodiscard]] bool clip() const;
  [[nodiscard]] bool einsum() const;
  [[nodiscard]] bool gather_rows() const;
  [[nodiscard]] bool one_hot() const;
  [[nodiscard]] bool convolution() const;
  [[nodiscard]] bool resized() const;
  [[nodiscard]] bool product() const;
};

}  // namespace tbdsim
