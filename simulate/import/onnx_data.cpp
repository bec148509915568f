#include "simulate/import/onnx_data.h"

#include <algorithm>
#include <numeric>

namespace tbdsim {
namespace {

bool is_batch(const OnnxSide& side) { return side.batch && side.size == 1; }

std::int64_t elements_from(const OnnxSides& sides, std::size_t first) {
  std::int64_t product = 1;
  for (std::size_t i = first; i < sides.size(); ++i) product = product_of({product, sides[i].size});
  return product;
}

}  // namespace

std::vector<std::int64_t> shape_beside(const OnnxSides& sides, const OnnxSides& like) {
  std::vector<std::int64_t> shape;
  for (std::size_t i = 0; i < sides.size(); ++i) {
    const std::size_t other = i + like.size() - std::min(like.size(), sides.size());
    if (other >= like.size() || !is_batch(like[other])) shape.push_back(sides[i].size);
  }
  if (shape.empty()) shape.push_back(1);
  return shape;
}

std::vector<std::int64_t> shape_of(const OnnxSides& sides) { return shape_beside(sides, sides); }

std::vector<std::int64_t> dims_of(const OnnxSides& sides, std::int64_t batch) {
  std::vector<std::int64_t> dims;
  for (const OnnxSide& side : sides) dims.push_back(side.batch ? product_of({side.size, batch}) : side.size);
  return dims;
}

bool can_be(const OnnxSides& sides) {
  return sides.size() <= kMostSides && std::ranges::all_of(sides, [](const OnnxSide& side) {
           return side.size >= 1 && side.size <= kLargestSide;
         });
}

bool is_in_order(const OnnxData& data) {
  std::size_t last = 0;
  for (std::size_t i = 0; i < std::min(data.places.size(), data.sides.size()); ++i) {
    if (data.sides[i].size == 1) continue;
    if (data.places[i] < last) return false;
    last = data.places[i];
  }
  return true;
}

OnnxSides sides_in_memory(const OnnxData& data) {
  if (data.places.size() < data.sides.size()) return data.sides;
  std::vector<std::size_t> order(data.sides.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return data.places[i]; });
  OnnxSides sides;
  for (const std::size_t i : order) sides.push_back(data.sides[i]);
  return sides;
}

OnnxSides batch_and(const std::vector<std::int64_t>& shape) {
  OnnxSides sides = {{.size = 1, .batch = true}};
  for (const std::int64_t size : shape) sides.push_back({.size = size});
  return sides;
}

std::optional<OnnxSides> reshaped_sides(const OnnxSides& from, std::vector<std::int64_t> dims,
                                        std::int64_t batch) {
  const auto whose = std::ranges::find(from, true, &OnnxSide::batch);
  if (whose == from.end() || dims.empty()) return std::nullopt;
  for (std::size_t i = 0; i < dims.size() && i < from.size(); ++i) {
    if (dims[i] == 0) dims[i] = dims_of(from, batch)[i];
  }
  const std::int64_t inner =
      elements_from(from, static_cast<std::size_t>(whose - from.begin())) / whose->outer;
  const std::int64_t sample = elements_from(from, 0);
  std::int64_t known = 1, unknown = 0;
  for (const std::int64_t dim : dims) {
    if (dim > 0) known = product_of({known, dim});
    if (dim <= 0) ++unknown;
  }
  if (unknown == 0 && known == sample && batch != 1) {  // written for a batch of 1
    dims[0] *= batch;
    known *= batch;
  }
  const std::int64_t all = product_of({sample, batch});
  if (all < 1) return std::nullopt;
  if (unknown > 1 || all % known != 0 || (unknown == 0 && known != all)) return std::nullopt;
  for (std::int64_t& dim : dims) dim = dim > 0 ? dim : all / known;
  // The batch lies in the side that its stride lies in.
  OnnxSides sides;
  bool found = false;
  std::int64_t after = all;
  for (const std::int64_t dim : dims) {
    after /= dim;
    const bool holds = !found && after <= inner && after * dim >= inner * batch;
    if (holds && dim % batch != 0) return std::nullopt;
    sides.push_back({.size = holds ? dim / batch : dim, .batch = holds});
    if (holds) sides.back().outer = std::max<std::int64_t>(1, after * dim / (inner * batch));
    found |= holds;
  }
  return found ? std::optional(sides) : std::nullopt;
}

std::optional<OnnxSides> spread_sides(OnnxSides a, OnnxSides b) {
  if (a.size() < b.size()) std::swap(a, b);
  b.insert(b.begin(), a.size() - b.size(), OnnxSide{});
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i].size != b[i].size && a[i].size != 1 && b[i].size != 1) return std::nullopt;
    a[i].size = std::max(a[i].size, b[i].size);
    a[i].batch |= b[i].batch;
  }
  return a;
}

OnnxSides sides_beside(const std::vector<std::int64_t>& dims, const OnnxSides& like, std::int64_t batch) {
  OnnxSides sides;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    const std::size_t other = i + like.size() - dims.size();
    const bool holds = other < like.size() && like[other].batch && dims[i] % batch == 0 &&
                       (dims[i] / batch == like[other].size || dims[i] == batch);
    sides.push_back({.size = holds ? dims[i] / batch : dims[i], .batch = holds});
  }
  return sides;
}

}  // namespace tbdsim
