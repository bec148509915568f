// Operators of ONNX that join tensors, take parts of them or make them larger.
#include <algorithm>
#include <numeric>
#include <utility>

#include "hwspecs/base/spec_writer.h"
#include "simulate/import/network.h"
#include "simulate/import/onnx_constants.h"
#include "simulate/import/onnx_node.h"
#include "simulate/import/onnx_operators.h"
#include "simulate/import/onnx_scaling.h"

namespace tbdsim {
namespace {

using Shape = std::vector<std::int64_t>;

// The axis of a node, counted from the first; -1 for none of that tensor.
std::int64_t axis_of(const OnnxNode& node, std::int64_t otherwise, std::size_t rank) {
  std::int64_t axis = whole_number_of(node, "axis", otherwise);
  if (axis < 0) axis += static_cast<std::int64_t>(rank);
  return axis >= 0 && axis < static_cast<std::int64_t>(rank) ? axis : -1;
}

}  // namespace

NetworkTensor add_resized(OnnxConversion& net, const std::string& type, const std::string& name,
                          const NetworkTensor& from, const Shape& shape, LayerKeys keys) {
  net.builder().fix_shapes();
  std::vector<SpecTree> dims;
  for (const std::int64_t side : shape) dims.push_back(spec_number(side));
  keys.emplace_back("dims", spec_list(dims));
  return net.builder().add(type, name, {from}, shape, std::move(keys));
}

NetworkTensor add_trained(OnnxConversion& net, const OnnxNode& node, const OnnxTensor& constant,
                          const NetworkTensor& near, const Shape& shape) {
  return add_resized(net, "trained", name_of_layer(node) + "/weight", near, shape,
                     {{"elements", spec_number(net.new_elements(constant))}});
}

// Along a side that is neither the first nor the last, the sides behind it are seen as one.
void convert_concat(OnnxConversion& net, const OnnxNode& node) {
  const OnnxData* data = nullptr;
  for (std::size_t i = 0; i < node.inputs.size() && data == nullptr; ++i) data = net.data(node, i);
  if (data == nullptr) return net.unsupported(node);
  const OnnxData beside = *data;
  const std::int64_t axis = axis_of(node, 1, beside.sides.size());
  if (axis < 0) return net.unsupported(node, "along another side");
  const auto at = static_cast<std::size_t>(axis);
  OnnxSides all = beside.sides;
  all[at].size = 0;
  std::vector<NetworkTensor> parts;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    OnnxSides sides;
    if (const OnnxData* part = net.data(node, i)) {
      sides = part->sides;
      if (sides.size() != all.size() || sides[at].batch)
        return net.unsupported(node, "of tensors of several shapes");
      parts.push_back(net.viewed(part->layer, shape_beside(sides, beside.sides)));
    } else if (const OnnxTensor* constant = net.constant(node, i)) {
      if (constant->dims.size() != all.size()) return net.unsupported(node, "with a constant of other sides");
      sides = beside.sides;
      sides[at].size = constant->dims[at];
      if (sides[at].size < 1) continue;
      parts.push_back(add_trained(net, node, *constant, beside.layer, shape_beside(sides, beside.sides)));
    } else {
      return net.unsupported(node, "with an unknown part");
    }
    all[at].size += sides[at].size;
  }
  if (parts.size() == 1) return net.set(node, parts[0], all);
  const Shape shape = shape_of(all);
  std::size_t place = 0;  // of the side in the shape
  for (std::size_t i = 0; i < at; ++i) place += all[i].batch && all[i].size == 1 ? 0 : 1;
  const auto joined = [&](const Shape& of) {  // sides from the place on as one
    Shape seen(of.begin(), of.begin() + static_cast<std::ptrdiff_t>(place));
    seen.push_back(product_of({of.begin() + static_cast<std::ptrdiff_t>(place), of.end()}));
    return seen;
  };
  const bool first = place == 0, last = place + 1 == shape.size();
  if (!first && !last) {
    for (NetworkTensor& part : parts) part = net.viewed(part, joined(part.shape));
  }
  LayerKeys keys;
  if (!first) keys.emplace_back("axis", spec_scalar("last"));
  net.set(node,
          net.builder().add("concat", name_of_layer(node), parts, first || last ? shape : joined(shape),
                            std::move(keys)),
          all);
}

void convert_split(OnnxConversion& net, const OnnxNode& node) {
  const OnnxData* found = net.data(node, 0);
  const std::int64_t axis = found == nullptr ? -1 : axis_of(node, 0, found->sides.size());
  if (axis < 0) return net.unsupported(node);
  const OnnxData data = *found;
  const auto at = static_cast<std::size_t>(axis);
  Shape sizes = net.whole_values(node, 1);
  if (sizes.empty()) sizes = whole_numbers(node, "split");
  const auto count = std::ssize(node.outputs);
  if (data.sides[at].batch || count == 0) return net.unsupported(node, "along the batch");
  const std::int64_t even = (data.sides[at].size + count - 1) / count;
  const bool equal = std::ranges::all_of(sizes, [&](auto size) { return size == even; }) &&
                     even * count == data.sides[at].size && at + 1 == data.sides.size() && is_in_order(data);
  const NetworkTensor from = net.stored(data);
  for (std::int64_t i = 0; i < count; ++i) {
    OnnxData part = data;
    const auto k = static_cast<std::size_t>(i);
    part.sides[at].size = k < sizes.size() ? sizes[k] : std::min(even, data.sides[at].size - even * i);
    if (part.sides[at].size < 1) return net.unsupported(node, "to sides that do not fit");
    LayerKeys keys;
    if (equal && count > 1) keys.emplace_back("parts", spec_number(count));
    part.layer = add_resized(net, "slice", name_of_layer(node), from, shape_of(sides_in_memory(part)),
                             std::move(keys));
    part.whole = false;
    net.set(node.outputs[k], std::move(part));
  }
}

void convert_sequence_part(OnnxConversion& net, const OnnxNode& node) {
  constexpr std::int64_t kMostParts = 64;
  const OnnxNode* whole = net.producer(node, 0, "SplitToSequence");
  const OnnxData* data = whole == nullptr ? nullptr : net.data(*whole, 0);
  const Shape index = net.whole_values(node, 1);
  const std::int64_t axis = data == nullptr ? -1 : axis_of(*whole, 0, data->sides.size());
  if (axis < 0 || index.size() != 1 || node.outputs.empty()) return net.unsupported(node);
  const std::int64_t all = data->sides[static_cast<std::size_t>(axis)].size;
  Shape sizes = net.whole_values(*whole, 1);
  if (sizes.size() == 1 && net.constant(*whole, 1)->dims.empty()) {  // the size of each, and a rest
    const std::int64_t size = std::min(sizes[0], all);
    if (size < 1) return net.unsupported(node, "of no such part");
    const std::int64_t rest = all % size;
    if (all / size > kMostParts) return net.unsupported(node, "of a sequence of more than 64 parts");
    sizes.assign(static_cast<std::size_t>(all / size), size);
    if (rest > 0) sizes.push_back(rest);
  }
  const std::int64_t parts = std::ssize(sizes), at = index[0] < 0 ? index[0] + parts : index[0];
  if (parts > kMostParts) return net.unsupported(node, "of a sequence of more than 64 parts");
  if (at < 0 || at >= parts) return net.unsupported(node, "of no such part");
  if (std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0}) != all)
    return net.unsupported(node, "of parts that are not the whole");
  OnnxNode split = *whole;
  split.op = "Split";
  split.inputs.resize(1);
  split.attributes["split"].integers = std::move(sizes);
  split.outputs.assign(static_cast<std::size_t>(parts), whole->outputs[0] + " part");
  split.outputs[static_cast<std::size_t>(at)] = node.outputs[0];
  split.name = name_of_layer(node);
  convert_split(net, split);
}

void convert_slice(OnnxConversion& net, const OnnxNode& node) {
  const OnnxData* found = net.data(node, 0);
  if (found == nullptr) return net.unsupported(node);
  const OnnxData data = *found;
  const Shape before = dims_of(data.sides, net.batch()), after = sliced_dims(net, node, before);
  if (after.size() != before.size()) return net.unsupported(node, "of unknown sides");
  if (after == before) return net.set(node.outputs[0], data);
  OnnxData part = data;
  for (std::size_t i = 0; i < part.sides.size(); ++i) {
    if (after[i] == before[i]) continue;
    if (part.sides[i].batch || after[i] < 1)
      return net.unsupported(node, part.sides[i].batch ? "of the batch" : "of nothing");
    part.sides[i].size = after[i];
  }
  part.layer =
      add_resized(net, "slice", name_of_layer(node), net.stored(data), shape_of(sides_in_memory(part)));
  part.whole = false;
  net.set(node, std::move(part));
}

// Rows of a table, or a part of a tensor.
void convert_gather(OnnxConversion& net, const OnnxNode& node) {
  const OnnxTensor* table = net.constant(node, 0);
  const OnnxData* index = net.data(node, 1);
  if (table != nullptr && index != nullptr && table->dims.size() == 2) {
    OnnxSides sides = index->sides;
    const Shape positions = shape_of(sides);
    if (product_of(positions) != product_of(index->layer.shape))
      return net.unsupported(node, "by other indices");
    Shape shape = positions;
    shape.push_back(table->dims[1]);
    sides.push_back({.size = table->dims[1]});
    const NetworkTensor to =
        net.builder().add("embedding", name_of_layer(node), {net.viewed(index->layer, positions)}, shape,
                          {{"words", spec_number(table->dims[0])}, {"outputs", spec_number(table->dims[1])}});
    net.set_owner(*table, to.layer);
    return net.set(node, to, sides);
  }
  const OnnxData* found = net.data(node, 0);
  const OnnxTensor* rows = net.constant(node, 1);
  if (found == nullptr || (rows == nullptr && index == nullptr)) return net.unsupported(node);
  const OnnxData data = *found;
  const std::int64_t axis = axis_of(node, 0, data.sides.size());
  if (rows != nullptr && data.sides.size() == 1) {  // all elements in one row, taken apart again
    if (const auto sides = reshaped_sides(data.sides, rows->dims, net.batch()))
      return net.set(node, net.viewed(data.layer, shape_of(*sides)), *sides);
  }
  if (index != nullptr && data.sides.size() == 2 && data.sides[0].batch &&
      axis == 0) {  // a position of each sample
    const OnnxSides sides = {{.size = 1, .batch = true}, data.sides[1]};
    const NetworkTensor all = net.viewed(data.layer, {data.sides[0].size, data.sides[1].size});
    return net.set(node,
                   net.viewed(add_resized(net, "slice", name_of_layer(node), all, {1, data.sides[1].size}),
                              {data.sides[1].size}),
                   sides);
  }
  const Shape chosen = rows != nullptr ? rows->dims : Shape(index->sides.size() > 1 ? 1 : 0, 1);
  if (axis < 0 || chosen.size() > 1) return net.unsupported(node, "of other indices");
  const auto at = static_cast<std::size_t>(axis);
  if (data.sides[at].batch) return net.unsupported(node, "of the batch");
  OnnxData part = data;
  part.sides[at].size = chosen.empty() ? 1 : chosen[0];
  part.layer = add_resized(net, part.sides[at].size <= data.sides[at].size ? "slice" : "pad",
                           name_of_layer(node), net.stored(data), shape_of(sides_in_memory(part)));
  part.whole = false;
  if (chosen.empty()) {
    part.sides.erase(part.sides.begin() + axis);
    if (!part.places.empty()) part.places.erase(part.places.begin() + axis);
  }
  net.set(node, std::move(part));
}

// Elements along one side, another for each.
void convert_gather_elements(OnnxConversion& net, const OnnxNode& node) {
  const OnnxData* found = net.data(node, 0);
  if (found == nullptr) return net.unsupported(node);
  const OnnxData data = *found;
  const OnnxTensor* rows = net.constant(node, 1);
  const OnnxData* index = net.data(node, 1);
  OnnxSides sides = index != nullptr
                        ? index->sides
                        : sides_beside(rows != nullptr ? rows->dims : Shape{}, data.sides, net.batch());
  if (sides.size() != data.sides.size()) return net.unsupported(node, "of other sides");
  for (std::size_t i = 0; i < sides.size(); ++i) sides[i].batch = data.sides[i].batch;
  const Shape shape = shape_of(sides);
  bool smaller = true;
  for (std::size_t i = 0; i < sides.size(); ++i) smaller &= sides[i].size <= data.sides[i].size;
  const NetworkTensor part =
      add_resized(net, smaller ? "slice" : "pad", name_of_layer(node), net.viewed(data), shape);
  net.set(node, net.builder().add("scale", name_of_layer(node), {part}, shape), sides);
}

void convert_expand(OnnxConversion& net, const OnnxNode& node) {
  const OnnxData* found = net.data(node, 0);
  if (found == nullptr) return net.unsupported(node);
  const OnnxData data = *found;
  Shape dims = net.whole_values(node, 1);
  const Shape before = dims_of(data.sides, net.batch());
  if (node.op == "Tile") {
    for (std::size_t i = 0; i < dims.size() && i < before.size(); ++i)
      dims[i] = product_of({std::max<std::int64_t>(dims[i], 0), before[i]});
  }
  OnnxSides sides = sides_beside(dims, data.sides, net.batch());
  OnnxSides from = data.sides;
  if (from.size() < sides.size()) from.insert(from.begin(), sides.size() - from.size(), OnnxSide{});
  const bool none = std::ranges::any_of(dims, [](auto side) { return side < 1; });
  if (dims.empty() || none || (node.op == "Expand" && !spread_sides(from, sides)))
    return net.unsupported(node, "to unknown sides");
  if (node.op == "Expand") sides = *spread_sides(from, sides);
  const Shape shape = shape_of(sides);
  const NetworkTensor view = net.viewed(data.layer, shape_beside(from, sides));
  if (view.shape == shape) return net.set(node, view, sides);
  net.set(node, add_resized(net, node.op == "Tile" ? "pad" : "expand", name_of_layer(node), view, shape),
          sides);
}

// Zeros, or a mirror, around it; fewer than none leave a part.
void convert_pad(OnnxConversion& net, const OnnxNode& node) {
  const OnnxData* found = net.data(node, 0);
  if (found == nullptr) return net.unsupported(node);
  const OnnxData data = *found;
  Shape pads = whole_numbers(node, "pads"), axes = net.whole_values(node, 3);
  if (pads.empty()) pads = net.whole_values(node, 1);
  const std::size_t count = pads.size() / 2;
  if (axes.empty() && count != data.sides.size()) return net.unsupported(node, "by unknown numbers");
  OnnxSides large = data.sides, sides = data.sides;
  for (std::size_t i = 0; i < count; ++i) {
    std::int64_t axis = axes.empty() ? static_cast<std::int64_t>(i) : i < axes.size() ? axes[i] : -1;
    if (axis < 0) axis += std::ssize(sides);
    const std::int64_t before = pads[i], after = pads[i + count];
    if (before == 0 && after == 0) continue;
    if (axis < 0 || axis >= std::ssize(sides) || sides[static_cast<std::size_t>(axis)].batch)
      return net.unsupported(node, "of the batch");
    constexpr std::int64_t kMost = 1'000'000;
    OnnxSide& side = sides[static_cast<std::size_t>(axis)];
    large[static_cast<std::size_t>(axis)].size +=
        std::clamp<std::int64_t>(before, 0, kMost) + std::clamp<std::int64_t>(after, 0, kMost);
    side.size += std::clamp(before, -kMost, kMost) + std::clamp(after, -kMost, kMost);
    if (side.size < 1) return net.unsupported(node, "that leaves nothing");
  }
  NetworkTensor to = net.viewed(data);
  if (large != data.sides) to = add_resized(net, "pad", name_of_layer(node), to, shape_of(large));
  if (large != sides) to = add_resized(net, "slice", name_of_layer(node), to, shape_of(sides));
  net.set(node, to, sides);
}

void convert_reduction(OnnxConversion& net, const OnnxNode& node) {
  const OnnxData data = *net.data(node, 0);
  const std::size_t rank = data.sides.size();
  const bool global = node.op.starts_with("Global");
  Shape axes = axes_of(net, node, 1, rank);
  if (global) axes.erase(axes.begin(), axes.begin() + std::min<std::ptrdiff_t>(2, std::ssize(axes)));
  const bool keep = global || whole_number_of(node, "keepdims", 1) != 0;
  OnnxSides sides = data.sides;
  for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
    OnnxSide& side = sides[static_cast<std::size_t>(*axis)];
    if (side.batch) return net.unsupported(node, "over the batch");
    side.size = 1;
    if (!keep) sides.erase(sides.begin() + *axis);
  }
  const NetworkTensor from = net.viewed(data);
  const Shape shape = shape_of(sides);
  const bool mean = node.op == "ReduceMean" || node.op == "GlobalAveragePool";
  if (mean && from.shape.size() == 3 && rank == 4 && axes == Shape{2, 3}) {
    const NetworkTensor to =
        net.builder().add("global_avg_pool", name_of_layer(node), {from}, {from.shape[0], 1, 1});
    return net.set(node, net.viewed(to, shape), sides);
  }
  const bool largest = node.op == "ReduceMax" || node.op == "ReduceMin" || node.op == "GlobalMaxPool";
  LayerKeys keys;
  if (!mean) keys.emplace_back("operation", spec_scalar(largest ? "max" : "sum"));
  NetworkTensor reduced = from;
  const bool function = !mean && !largest && node.op != "ReduceSum";  // of each element, as its square
  if (function) reduced = net.builder().add("pointwise", name_of_layer(node), {from}, from.shape);
  net.set(node, add_resized(net, "reduce", name_of_layer(node), reduced, shape, std::move(keys)), sides);
}

void convert_upsample(OnnxConversion& net, const OnnxNode& node, const NetworkTensor& from) {
  if (from.shape.size() != 3) return net.unsupported(node, "of no image");
  Shape image = {from.shape[1], from.shape[2]};
  for (std::size_t i = 1; i < node.inputs.size(); ++i) {
    const std::vector<double> numbers = net.values(node, i);
    if (numbers.size() != 4) continue;
    const bool sizes = i == 3;
    constexpr double kLargest = 1e6;
    for (std::size_t k = 0; k < 2; ++k) {
      const double side = sizes ? numbers[k + 2] : numbers[k + 2] * static_cast<double>(from.shape[k + 1]);
      image[k] = side >= 1 && side <= kLargest ? static_cast<std::int64_t>(side) : 0;
    }
  }
  const auto to = add_upsample(net.builder(), node, from, image);
  to ? net.set(node, *to) : net.unsupported(node, "to an unknown size");
}

void convert_depth_to_space(OnnxConversion& net, const OnnxNode& node, const NetworkTensor& from) {
  const auto to = add_depth_to_space(net.builder(), node, from);
  to ? net.set(node, *to) : net.unsupported(node, "of no images");
}

}  // namespace tbdsim
