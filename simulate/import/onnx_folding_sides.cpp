// Constants of the same elements in other sides, or of a part of them.
#include <algorithm>

#include "simulate/import/onnx_constants.h"
#include "simulate/import/onnx_folding.h"
#include "simulate/import/onnx_node.h"
#include "simulate/import/onnx_values.h"

namespace tbdsim {

bool Folding::shape() const {
  const auto of = dims(0);
  if (!of) return false;
  if (node.op == "Size") return done({}, {static_cast<double>(product_of(*of))});
  const auto rank = std::ssize(*of);
  std::int64_t first = whole_number_of(node, "start", 0), last = whole_number_of(node, "end", rank);
  first = std::clamp<std::int64_t>(first < 0 ? first + rank : first, 0, rank);
  last = std::clamp<std::int64_t>(last < 0 ? last + rank : last, first, rank);
  const std::vector<double> values(of->begin() + first, of->begin() + last);
  return done({last - first}, values);
}

bool Folding::gather() const {
  const OnnxTensor *from = in(0), *index = in(1);
  if (from == nullptr || index == nullptr || from->dims.empty()) return false;
  std::int64_t axis = whole_number_of(node, "axis", 0);
  if (axis < 0) axis += std::ssize(from->dims);
  if (axis < 0 || axis >= std::ssize(from->dims)) return false;
  Dims to(from->dims.begin(), from->dims.begin() + axis);
  to.insert(to.end(), index->dims.begin(), index->dims.end());
  to.insert(to.end(), from->dims.begin() + axis + 1, from->dims.end());
  std::vector<double> result;
  const std::vector<double> values = net.values(node, 0);
  if (from->dims.size() == 1) {
    for (std::int64_t at : net.whole_values(node, 1)) {
      if (at < 0) at += std::ssize(values);
      if (at >= 0 && at < std::ssize(values)) result.push_back(values[static_cast<std::size_t>(at)]);
    }
  }
  return done(to, result);
}

bool Folding::slice() const {
  const OnnxTensor* from = in(0);
  if (from == nullptr) return false;
  const Dims to = sliced_dims(net, node, from->dims);
  if (to.empty()) return false;
  const SlicedSides parts = slice_of(net, node, from->dims);
  return done(to, picked(net.values(node, 0), from->dims, to, [&](Dims at) {
                for (std::size_t k = 0; k < at.size(); ++k) at[k] = parts.first[k] + at[k] * parts.step[k];
                return at;
              }));
}

bool Folding::concat() const {
  Dims to;
  std::vector<double> values;
  bool known = true;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    const OnnxTensor* part = in(i);
    if (part == nullptr) return false;
    std::int64_t axis = whole_number_of(node, "axis", 0);
    if (axis < 0) axis += std::ssize(part->dims);
    if (axis < 0 || axis >= std::ssize(part->dims)) return false;
    if (i == 0) {
      to = part->dims;
    } else if (part->dims.size() == to.size()) {
      std::int64_t& side = to[static_cast<std::size_t>(axis)];
      side = std::min(kLargestSide, side + part->dims[static_cast<std::size_t>(axis)]);
    }
    known = known && axis == 0 && product_of(to) <= kMostFolded;
    if (!known) continue;
    const auto own = net.values(node, i);
    known = !own.empty() || part->dims[0] == 0;
    values.insert(values.end(), own.begin(), own.end());
  }
  return done(to, known ? values : std::vector<double>{});
}

bool Folding::squeeze() const {
  const OnnxTensor* from = in(0);
  if (from == nullptr) return false;
  const bool grows = node.op == "Unsqueeze";
  Dims to = from->dims, axes = whole_numbers(node, "axes");
  if (axes.empty()) axes = net.whole_values(node, 1);
  if (grows && (axes.empty() || axes.size() > kMostSides)) return false;
  const auto rank = std::ssize(to) + (grows ? std::ssize(axes) : 0);
  for (std::int64_t& axis : axes) axis += axis < 0 ? rank : 0;
  std::ranges::sort(axes);
  if (grows) {
    for (const std::int64_t axis : axes)
      to.insert(to.begin() + std::clamp<std::int64_t>(axis, 0, std::ssize(to)), 1);
  } else if (axes.empty()) {
    std::erase(to, 1);
  } else {
    for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
      if (*axis >= 0 && *axis < std::ssize(to)) to.erase(to.begin() + *axis);
    }
  }
  return done(to, net.values(node, 0));
}

bool Folding::reshape() const {
  const OnnxTensor* from = in(0);
  if (from == nullptr) return false;
  Dims to = net.whole_values(node, 1);
  if (to.empty()) to = whole_numbers(node, "shape");
  if (in(1) == nullptr && to.empty()) return false;
  std::int64_t known = 1;
  for (std::size_t i = 0; i < to.size(); ++i) {
    if (to[i] == 0 && i < from->dims.size()) to[i] = from->dims[i];
    if (to[i] > 0) known = product_of({known, to[i]});
  }
  for (std::int64_t& side : to) side = side < 0 ? product_of(from->dims) / known : side;
  return done(to, net.values(node, 0));
}

bool Folding::flatten() const {
  if (in(0) == nullptr) return false;
  const Dims& from = in(0)->dims;
  const std::int64_t rank = std::ssize(from), axis = whole_number_of(node, "axis", 1);
  const auto middle = from.begin() + std::clamp<std::int64_t>(axis < 0 ? axis + rank : axis, 0, rank);
  return done({product_of({from.begin(), middle}), product_of({middle, from.end()})}, net.values(node, 0));
}

bool Folding::transpose() const {
  if (in(0) == nullptr) return false;
  Dims to = in(0)->dims;
  const Dims order = whole_numbers(node, "perm");
  if (order.empty()) std::reverse(to.begin(), to.end());
  for (std::size_t i = 0; i < order.size() && i < to.size(); ++i) {
    if (order[i] < 0 || order[i] >= std::ssize(to)) return false;
    to[i] = in(0)->dims[static_cast<std::size_t>(order[i])];
  }
  return done(to, picked(net.values(node, 0), in(0)->dims, to, [&](const Dims& at) {
                Dims place(at.rbegin(), at.rend());
                for (std::size_t k = 0; k < order.size() && k < at.size(); ++k)
                  place[static_cast<std::size_t>(order[k])] = at[k];
                return place;
              }));
}

bool Folding::split() const {
  if (in(0) == nullptr || in(0)->dims.empty()) return false;
  std::int64_t axis = whole_number_of(node, "axis", 0);
  const Dims& from = in(0)->dims;
  if (axis < 0) axis += std::ssize(from);
  if (axis < 0 || axis >= std::ssize(from)) return false;
  Dims sizes = net.whole_values(node, 1);
  const auto values = net.values(node, 0);
  std::int64_t at = 0;
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    Dims to = from;
    std::int64_t& side = to[static_cast<std::size_t>(axis)];
    side = i < sizes.size() ? sizes[i] : side / std::ssize(node.outputs);
    std::vector<double> part;
    if (from.size() == 1 && at >= 0 && side >= 0 && at + side <= std::ssize(values))
      part.assign(values.begin() + at, values.begin() + at + side);
    at += side;
    (void)done(to, part, i);
  }
  return true;
}

}  // namespace tbdsim
