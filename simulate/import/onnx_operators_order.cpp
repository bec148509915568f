// Operators of ONNX that give the same elements other sides, or show them in another order.
#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "simulate/import/network.h"
#include "simulate/import/onnx_node.h"
#include "simulate/import/onnx_operators.h"

namespace tbdsim {
namespace {

using Shape = std::vector<std::int64_t>;

std::vector<std::size_t> places_of(const OnnxData& data) {
  std::vector<std::size_t> places = data.places;
  if (places.empty()) {
    for (std::size_t i = 0; i < data.sides.size(); ++i) places.push_back(i);
  }
  return places;
}

}  // namespace

bool change_rank(const OnnxConversion& net, const OnnxNode& node, OnnxData& data) {
  const bool grows = node.op == "Unsqueeze";
  OnnxSides& sides = data.sides;
  std::vector<std::size_t> places = places_of(data);
  Shape axes = whole_numbers(node, "axes");
  if (axes.empty()) axes = net.whole_values(node, 1);
  if (grows && (axes.empty() || sides.size() + axes.size() > kMostSides)) return false;
  if (axes.empty()) {
    for (std::size_t i = 0; i < sides.size(); ++i) {
      if (sides[i] == OnnxSide{}) axes.push_back(static_cast<std::int64_t>(i));
    }
  }
  const auto rank = std::ssize(sides) + (grows ? std::ssize(axes) : 0);
  for (std::int64_t& axis : axes) axis += axis < 0 ? rank : 0;
  std::ranges::sort(axes);
  axes.erase(std::unique(axes.begin(), axes.end()), axes.end());
  if (!axes.empty() && (axes.front() < 0 || axes.back() >= rank)) return false;
  if (grows) {
    for (const std::int64_t axis : axes) {
      sides.insert(sides.begin() + std::min<std::int64_t>(axis, std::ssize(sides)), OnnxSide{});
      places.insert(places.begin() + std::min<std::int64_t>(axis, std::ssize(places)), 0);
    }
  } else {
    for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
      const OnnxSide& side = sides[static_cast<std::size_t>(*axis)];
      if (side.size != 1 || side.batch) return false;
      sides.erase(sides.begin() + *axis);
      places.erase(places.begin() + *axis);
    }
  }
  data.places = std::move(places);
  if (is_in_order(data)) data.places.clear();
  return true;
}

void convert_reshape(OnnxConversion& net, const OnnxNode& node) {
  OnnxData data = *net.data(node, 0);
  if (node.op == "Squeeze" || node.op == "Unsqueeze") {
    if (!change_rank(net, node, data)) return net.unsupported(node, "by sides that do not fit");
    return net.set(node.outputs[0], data);
  }
  Shape dims = net.whole_values(node, 1);
  if (dims.empty()) dims = whole_numbers(node, "shape");
  if (node.op == "Flatten") {
    const Shape before = dims_of(data.sides, net.batch());
    const std::int64_t given = whole_number_of(node, "axis", 1), rank = std::ssize(before);
    const std::int64_t axis = std::clamp<std::int64_t>(given < 0 ? given + rank : given, 0, rank);
    dims = {product_of({before.begin(), before.begin() + axis}),
            product_of({before.begin() + axis, before.end()})};
  }
  const auto sides = reshaped_sides(data.sides, dims, net.batch());
  if (!sides)
    return net.unsupported(
        node, fmt::format("of {} to {}, which does not fit",
                          fmt::join(dims_of(data.sides, net.batch()), " x "), fmt::join(dims, " x ")));
  const NetworkTensor from = is_in_order(data) ? data.layer : net.copied(data);
  net.set(node, net.viewed(from, shape_of(*sides), name_of_layer(node)), *sides);
}

// Dimensions in another order: a view, copied where a kernel needs it so.
void convert_transpose(OnnxConversion& net, const OnnxNode& node) {
  const OnnxData data = *net.data(node, 0);
  Shape order = whole_numbers(node, "perm");
  const auto rank = std::ssize(data.sides);
  if (order.empty()) {
    for (std::int64_t i = rank; i-- > 0;) order.push_back(i);
  }
  Shape sorted = order;
  std::ranges::sort(sorted);
  for (std::int64_t i = 0; i < rank; ++i) {
    if (std::ssize(sorted) != rank || sorted[static_cast<std::size_t>(i)] != i)
      return net.unsupported(node, "of no such dimensions");
  }
  OnnxData to{.layer = data.layer};
  const std::vector<std::size_t> places = places_of(data);
  for (const std::int64_t from : order) {
    to.sides.push_back(data.sides[static_cast<std::size_t>(from)]);
    to.places.push_back(places[static_cast<std::size_t>(from)]);
  }
  to.whole = data.whole;
  to.name = name_of_layer(node);
  net.set(node.outputs[0], to);
}

}  // namespace tbdsim
