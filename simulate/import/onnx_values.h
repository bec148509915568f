// Arithmetic on the constants of an ONNX graph: dimensions, values of small tensors.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "simulate/import/network.h"
#include "simulate/import/onnx_conversion.h"

namespace tbdsim {

using Dims = std::vector<std::int64_t>;
inline constexpr std::int64_t kMostFolded = 4'096;  // elements whose values are followed

// Dimensions that both spread to; none where they do not.
[[nodiscard]] std::optional<Dims> spread_dims(Dims a, Dims b);
// The index into a tensor of `dims` of an element of one that it spreads to.
[[nodiscard]] std::size_t spread_index(std::size_t index, const Dims& to, const Dims& dims);

// An element-wise operator on numbers, of one or two; null for others.
using NumberFunction = double (*)(double, double);
[[nodiscard]] NumberFunction number_function(std::string_view op);
// True for element-wise operators whose values nobody needs.
[[nodiscard]] bool keeps_dims(std::string_view op);

// The part of each side that a slice takes.
struct SlicedSides {
  Dims first, step, count;  // of each side; no counts where they do not fit
};
[[nodiscard]] SlicedSides slice_of(const OnnxConversion& net, const OnnxNode& node, const Dims& dims);

// Values of a view of a tensor: element by element, `source` says for the place in the view the place in it.
template <class Source>
std::vector<double> picked(const std::vector<double>& values, const Dims& from, const Dims& to,
                           Source source) {
  const std::int64_t count = product_of(to);
  if (values.empty() || product_of(from) != std::ssize(values) || count > kMostFolded || count < 1) return {};
  std::vector<double> result;
  for (std::int64_t index = 0; index < count; ++index) {
    Dims at(to.size());
    for (std::size_t k = to.size(), rest = static_cast<std::size_t>(index); k-- > 0;) {
      at[k] = static_cast<std::int64_t>(rest % static_cast<std::size_t>(to[k]));
      rest /= static_cast<std::size_t>(to[k]);
    }
    const Dims place = source(at);
    std::int64_t flat = 0;
    for (std::size_t k = 0; k < from.size(); ++k) flat = flat * from[k] + place[k];
    if (flat < 0 || flat >= std::ssize(values)) return {};
    result.push_back(values[static_cast<std::size_t>(flat)]);
  }
  return result;
}

}  // namespace tbdsim
