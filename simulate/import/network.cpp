#include "simulate/import/network.h"

#include <algorithm>
#include <cctype>
#include <filesystem>

#include <fmt/format.h>

#include "hwspecs/base/number.h"
#include "hwspecs/base/spec_writer.h"
#include "hwspecs/base/suggest.h"
#include "simulate/import/text_lines.h"

namespace tbdsim {
namespace {

constexpr std::size_t kMostLayers = 100'000;
constexpr std::int64_t kLargestSide = 100'000'000;

// The pads of one side as tbd-sim has them: a number on both, or "same".
struct Pad {
  bool same = false;
  std::int64_t number = 0;
};
std::optional<Pad> pad_of(const WindowSide& side, std::int64_t inputs) {
  const std::int64_t outputs = side.outputs(inputs);
  WindowSide plain = side;
  plain.round_up = false;
  for (const std::int64_t number : {side.before, side.after}) {
    plain.before = plain.after = number;
    if (plain.outputs(inputs) == outputs) return Pad{.same = false, .number = number};
  }
  if ((inputs + side.stride - 1) / side.stride == outputs) return Pad{.same = true, .number = 0};
  return std::nullopt;
}

}  // namespace

std::int64_t WindowSide::outputs(std::int64_t inputs) const {
  const std::int64_t span = (kernel - 1) * dilation + 1;
  const std::int64_t room = inputs + before + after - span;
  if (room < 0 || stride < 1) return 0;
  std::int64_t count = room / stride + 1;
  // A window that would begin behind the input and its first pad does not count.
  if (round_up && room % stride != 0 && count * stride < inputs + before) ++count;
  return count;
}

SpecTree spec_list(const std::vector<SpecTree>& items) {
  SpecTree list;
  list.kind = SpecTree::Kind::list;
  list.items = items;
  return list;
}

SpecTree spec_number(std::int64_t number) { return spec_scalar(std::to_string(number)); }

std::int64_t product_of(const std::vector<std::int64_t>& shape) {
  std::int64_t product = 1;
  for (const std::int64_t side : shape) {
    if (side > 0 && product > kLargestProduct / side) return kLargestProduct;
    product *= side;
  }
  return product;
}

void NetworkBuilder::fail(const std::string& what) const { fail_at(file_, 0, what); }

std::optional<std::vector<std::int64_t>> given_sides(const GivenValues& given, const std::string& key,
                                                     const NetworkBuilder& builder) {
  const auto found = given.find(key);
  if (found == given.end()) return std::nullopt;
  std::vector<std::int64_t> sides;
  for (std::size_t at = 0; at <= found->second.size();) {
    const std::size_t end = std::min(found->second.find('x', at), found->second.size());
    const auto side = parse_whole_number(found->second.substr(at, end - at));
    if (!side) builder.fail("--set " + key + "=" + found->second + "; expected sides as 28x28x1");
    sides.push_back(*side);
    at = end + 1;
  }
  return sides;
}

std::vector<std::string> names_of(const std::map<std::string, NetworkTensor>& tensors) {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : tensors) names.push_back(name);
  return names;
}

void NetworkBuilder::note_unsupported(const std::string& given, const std::string& where) {
  std::string what = given;
  std::ranges::replace_if(
      what, [](char c) { return std::iscntrl(static_cast<unsigned char>(c)) != 0; }, '?');
  Unsupported& noted = unsupported_[what];
  if (++noted.count == 1) noted.first = where;
}

NetworkTensor NetworkBuilder::input(const std::vector<std::int64_t>& shape, const std::string& name) {
  constexpr std::size_t kMostDimensions = 8;
  const bool can_be =
      !shape.empty() && shape.size() <= kMostDimensions &&
      std::all_of(shape.begin(), shape.end(), [](auto side) { return side > 0 && side <= kLargestSide; });
  if (!can_be) fail("the input has no shape of 1 to 8 sides above 0; expected channels x height x width");
  inputs_.emplace_back(unique(name, "data"), shape);
  return {.layer = inputs_.back().first, .shape = shape};
}

std::string NetworkBuilder::unique(std::string_view name, const std::string& type) {
  constexpr std::size_t kLongest = 100;
  std::string plain;
  for (const char c : name.substr(0, kLongest)) {
    const bool kept = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                      c == '_' || c == '/' || c == '.';
    if (kept || !plain.empty()) plain += kept ? c : '_';
    if (plain == "/") plain.clear();
  }
  if (plain.empty()) plain = type;
  std::string free = plain;
  int& next = next_.try_emplace(plain, 2).first->second;
  for (; !names_.insert(free).second; ++next) free = fmt::format("{}_{}", plain, next);
  return free;
}

NetworkTensor NetworkBuilder::add(const std::string& type, std::string_view name,
                                  const std::vector<NetworkTensor>& from, std::vector<std::int64_t> shape,
                                  LayerKeys keys) {
  if (layers_.size() >= kMostLayers) fail("more than 100000 layers; expected a smaller network");
  Layer layer{.name = unique(name, type), .from = {}, .entry = {}};
  add_entry(layer.entry, "name", spec_text(layer.name));
  add_entry(layer.entry, "type", spec_scalar(type));
  std::vector<SpecTree> inputs;
  for (const NetworkTensor& tensor : from) {
    layer.from.push_back(tensor.layer);
    inputs.push_back(spec_text(tensor.layer));
  }
  add_entry(layer.entry, "from", inputs.size() == 1 ? inputs[0] : spec_list(inputs));
  for (auto& [key, value] : keys) add_entry(layer.entry, key, std::move(value));
  NetworkTensor output{.layer = layer.name, .shape = std::move(shape)};
  layers_.push_back(std::move(layer));
  return output;
}

NetworkTensor NetworkBuilder::add_reshape(std::string_view name, const NetworkTensor& from,
                                          const std::vector<std::int64_t>& shape) {
  const auto channels = [](const std::vector<std::int64_t>& sides) {
    return sides.size() == 1 || (sides.size() == 3 && sides[1] == 1 && sides[2] == 1);
  };
  fixed_shapes_ |= !channels(from.shape) || !channels(shape);  // else no side follows from the image's
  std::vector<SpecTree> dims;
  for (const std::int64_t side : shape) dims.push_back(spec_number(side));
  return add("reshape", name, {from}, shape, {{"dims", spec_list(dims)}});
}

bool NetworkBuilder::has_pads(const WindowSide& height, const WindowSide& width,
                              const std::vector<std::int64_t>& shape) const {
  const auto tall = pad_of(height, shape.at(1)), wide = pad_of(width, shape.at(2));
  return tall && wide && tall->same == wide->same;
}

NetworkTensor NetworkBuilder::add_window(const std::string& type, std::string_view name,
                                         const NetworkTensor& from, const WindowSide& height,
                                         const WindowSide& width, std::int64_t channels, LayerKeys keys) {
  if (channels < 1) fail(fmt::format("{}: {} filters; expected one or more", name, channels));
  if (from.shape.size() != 3) {
    note_unsupported(fmt::format("{} of an input of {} sides", type, from.shape.size()));
    return {.layer = from.layer, .shape = {channels, 1, 1}};
  }
  const std::vector<std::int64_t> shape = {channels, height.outputs(from.shape[1]),
                                           width.outputs(from.shape[2])};
  if (shape[1] == 0 || shape[2] == 0)
    fail(fmt::format("{}: a window of {} x {} does not fit its input of {} x {}; expected a larger input",
                     name, height.kernel, width.kernel, from.shape[1], from.shape[2]));
  const auto tall = pad_of(height, from.shape[1]), wide = pad_of(width, from.shape[2]);
  if (!tall || !wide || tall->same != wide->same) {
    note_unsupported(fmt::format("{} with pads {}, {} and {}, {}", type, height.before, height.after,
                                 width.before, width.after));
    return {.layer = from.layer, .shape = shape};
  }
  const auto both = [](std::int64_t a, std::int64_t b) {
    return a == b ? spec_number(a) : spec_list({spec_number(a), spec_number(b)});
  };
  keys.emplace_back("kernel", both(height.kernel, width.kernel));
  if (height.stride != 1 || width.stride != 1) keys.emplace_back("stride", both(height.stride, width.stride));
  keys.emplace_back("padding", tall->same ? spec_scalar("same") : both(tall->number, wide->number));
  if (height.dilation != 1 || width.dilation != 1)
    keys.emplace_back("dilation", both(height.dilation, width.dilation));
  return add(type, name, {from}, shape, std::move(keys));
}

// The layers that the named one reads, over others, and itself.
std::set<std::string> NetworkBuilder::needed_for(const std::string& name) const {
  std::set<std::string> needed{name};
  for (auto layer = layers_.rbegin(); layer != layers_.rend(); ++layer) {
    if (needed.contains(layer->name)) needed.insert(layer->from.begin(), layer->from.end());
  }
  return needed;
}

ImportedFile NetworkBuilder::finish(const NetworkTensor& given, const std::string& tool) {
  if (!unsupported_.empty()) {
    std::string list;
    for (const auto& [what, noted] : unsupported_)
      list += fmt::format("{}{} ({}{})", list.empty() ? "" : ", ", what, noted.count,
                          noted.first.empty() ? "" : ", at " + in_quotes(noted.first));
    fail("operators without a layer of tbd-sim: " + list +
         "; expected others (a captured step has no such limit: docs/capture.md)");
  }
  if (layers_.empty()) fail("holds no layer; expected a network");
  NetworkTensor output = given;
  if (output.shape.size() == 3 && output.shape[1] == 1 && output.shape[2] == 1)
    output = add_reshape("scores", output, {output.shape[0]});
  const bool labels = output.shape.size() == 1;
  (void)add(labels ? "softmax_loss" : "mean_loss", "loss", {output}, {});
  const std::set<std::string> needed = needed_for(layers_.back().name);

  SpecTree tree, variant, variants, graph, inputs, graphs, pass;
  add_entry(tree, "title", spec_text(title_));
  const std::vector<std::int64_t>& first = inputs_.at(0).second;
  const bool image = first.size() == 3;
  add_entry(tree, "sample", spec_scalar(image ? "image" : "sample"));
  const bool resizes = image && inputs_.size() == 1 && first[1] == first[2] && !fixed_shapes_;
  if (resizes) {
    SpecTree sizes;
    add_entry(sizes, "image_size", spec_number(first[1]));
    add_entry(tree, "sizes", std::move(sizes));
  }
  const std::string file_name = std::filesystem::path(file_).filename().string();
  add_entry(variant, "description", spec_text("imported; the update is momentum's unless edited"));
  add_entry(variant, "source", spec_text(fmt::format("{}, {}", tool, file_name)));
  add_entry(variant, "optimizer", spec_scalar("momentum"));
  add_entry(variants, "imported", std::move(variant));
  add_entry(tree, "variants", std::move(variants));
  for (const auto& [name, shape] : inputs_) {
    if (!needed.contains(name)) continue;
    std::vector<SpecTree> sides;
    for (std::size_t i = 0; i < shape.size(); ++i)
      sides.push_back(resizes && i > 0 ? spec_scalar("$image_size") : spec_number(shape[i]));
    add_entry(inputs, name, spec_list(sides));
  }
  add_entry(graph, "inputs", std::move(inputs));
  std::vector<SpecTree> layers;
  for (Layer& layer : layers_) {
    if (needed.contains(layer.name)) layers.push_back(std::move(layer.entry));
  }
  add_entry(graph, "layers", spec_list(layers));
  add_entry(graphs, "main", std::move(graph));
  add_entry(tree, "graphs", std::move(graphs));
  add_entry(pass, "graph", spec_scalar("main"));
  add_entry(tree, "training", spec_list({pass}));

  ImportedFile imported{.name = file_name_of(std::filesystem::path(file_).stem().string(), "model"),
                        .text = write_spec(tree),
                        .notes = notes_};
  imported.notes.push_back(fmt::format("{} layers; behind the last one {}", layers.size() - 1,
                                       labels ? "softmax and cross entropy" : "the mean as a loss"));
  return imported;
}

}  // namespace tbdsim
