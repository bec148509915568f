// A tensor of an ONNX graph that depends on the samples: which tensor of the network it is, and in which
// order of dimensions it is seen.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "simulate/import/network.h"

namespace tbdsim {

// One dimension: its size for one sample, times the batch where that lies in it.
struct OnnxSide {
  std::int64_t size = 1;
  bool batch = false;
  std::int64_t outer = 1;  // of the size, the part that the batch lies inside of

  friend bool operator==(const OnnxSide&, const OnnxSide&) = default;
};
using OnnxSides = std::vector<OnnxSide>;
inline constexpr std::size_t kMostSides = 64;  // of a tensor
inline constexpr std::int64_t kLargestSide = 1'000'000'000'000;

struct OnnxData {
  NetworkTensor layer{};
  OnnxSides sides{};
  std::vector<std::size_t> places{};  // of each side: its place in memory; empty: as they are
  std::string name{};                 // of the node that put the sides in another order
  bool whole = false;                 // indices, masks: nothing that a gradient flows through
};

// Sizes of one sample, without sides that are the batch alone: the shape of a layer.
[[nodiscard]] std::vector<std::int64_t> shape_of(const OnnxSides& sides);
// The same for a tensor beside another with those sides: one that is the batch alone in `like` is dropped.
[[nodiscard]] std::vector<std::int64_t> shape_beside(const OnnxSides& sides, const OnnxSides& like);
[[nodiscard]] std::vector<std::int64_t> dims_of(const OnnxSides& sides, std::int64_t batch);
[[nodiscard]] bool is_in_order(const OnnxData& data);
// The sides in the order in which they lie in memory.
[[nodiscard]] OnnxSides sides_in_memory(const OnnxData& data);
// True for sides of a tensor with elements, in numbers that can be computed with.
[[nodiscard]] bool can_be(const OnnxSides& sides);
[[nodiscard]] OnnxSides batch_and(const std::vector<std::int64_t>& shape);

// Sides of the same elements in other dimensions (one may be -1), and of a broadcast; none where they do not
// fit.
[[nodiscard]] std::optional<OnnxSides> reshaped_sides(const OnnxSides& from, std::vector<std::int64_t> dims,
                                                      std::int64_t batch);
[[nodiscard]] std::optional<OnnxSides> spread_sides(OnnxSides a, OnnxSides b);

// Dimensions as sides beside data: the batch lies where it lies there. None where they do not spread.
[[nodiscard]] OnnxSides sides_beside(const std::vector<std::int64_t>& dims, const OnnxSides& like,
                                     std::int64_t batch);

}  // namespace tbdsim
