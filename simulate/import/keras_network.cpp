#include "simulate/import/keras_network.h"

#include <algorithm>

#include <fmt/format.h>

#include "hwspecs/base/suggest.h"
#include "simulate/import/keras_conversion.h"

namespace tbdsim {
namespace {

constexpr std::int64_t kLargest = 1'000'000'000;
constexpr int kMostCalls = 200'000;  // a model that is used twice inside of one that is ...

class Reader {
 public:
  Reader(const std::string& file, const std::string& text, const GivenValues& given)
      : keras_(file, text), net_(keras_, file), given_(given) {}

  ImportedFile network() {
    const KerasModel& model = keras_.model();
    std::vector<KerasTensor> inputs;
    for (const std::size_t number : model.inputs) inputs.push_back(input(model.layers[number]));
    if (inputs.empty()) inputs.push_back({.inside = net_.builder().input(sides("input", model.input_shape))});
    const KerasOutputs outputs = read(model, inputs, "");
    if (outputs.size() > 1)
      net_.builder().note(
          fmt::format("the first of {} outputs; layers that only others need are left out", outputs.size()));
    return net_.builder().finish(net_.before_softmax(outputs.at(0).inside), "Keras");
  }

 private:
  // Sides without the batch, channels first.
  std::vector<std::int64_t> sides(const std::string& name, const JsonNode* shape) {
    const bool first = inputs_++ == 0;
    auto given = given_sides(given_, name, net_.builder());
    if (!given && first) given = given_sides(given_, "input", net_.builder());
    if (given) return keras_sides(net_, *given);
    const std::string expected = fmt::format("--set {}=224x224x3, say", first ? "input" : name);
    if (shape == nullptr) net_.builder().fail("no shape of the input is in the file; expected " + expected);
    if (!shape->is_list() || shape->size() == 0) shape->fail("a list of sides, the batch first");
    std::vector<std::int64_t> all;
    for (std::size_t i = 1; i < shape->size(); ++i) {
      const JsonNode side = (*shape)[i];
      if (side.is_null()) {
        net_.builder().fail(
            fmt::format("side {} of the input {} is left open; expected {}", i, in_quotes(name), expected));
      }
      all.push_back(side.whole(1, kLargest));
    }
    if (all.empty()) all = {1};
    return keras_sides(net_, all);
  }

  KerasTensor input(const KerasLayer& layer) {
    const JsonNode* shape = nullptr;
    for (const std::string_view key : {"batch_shape", "batch_input_shape"}) {
      if (shape == nullptr) shape = keras_.find(*layer.config, key);
    }
    const std::vector<std::int64_t> all = sides(layer.name.empty() ? "input" : layer.name, shape);
    return {.inside = net_.builder().input(all, layer.name.empty() ? "data" : layer.name)};
  }

  KerasOutputs read(const KerasModel& model, const std::vector<KerasTensor>& inputs,
                    const std::string& prefix) {
    std::map<std::pair<std::size_t, std::size_t>, KerasOutputs> made;
    std::size_t next = 0;
    for (std::size_t i = 0; i < model.inputs.size() && i < inputs.size(); ++i)
      made[{model.inputs[i], 0}] = {inputs[i]};
    for (const auto& [number, call] : model.order) {
      if (made.contains({number, call})) continue;
      if (++calls_ > kMostCalls)
        net_.builder().fail("more than 200000 calls of layers; expected a smaller network");
      const KerasLayer& layer = model.layers[number];
      KerasSite site{.layer = layer,
                     .type = layer.type,
                     .name = prefix + (layer.name.empty() ? layer.type : layer.name),
                     .config = *layer.config,
                     .call = layer.calls[call],
                     .from = {}};
      for (const KerasOutput& from : site.call.from) site.from.push_back(output(made, from, site));
      if (site.from.empty() && model.inputs.empty() && next++ == 0) site.from = inputs;
      made[{number, call}] = convert(site, prefix);
    }
    KerasOutputs outputs;
    for (const KerasOutput& from : model.outputs) {
      const auto& all = made.at({from.layer, from.call});
      outputs.push_back(all.at(std::min(from.number, all.size() - 1)));
    }
    return outputs;
  }

  KerasTensor output(const std::map<std::pair<std::size_t, std::size_t>, KerasOutputs>& made,
                     const KerasOutput& from, const KerasSite& site) const {
    const auto& all = made.at({from.layer, from.call});
    if (from.number < all.size()) return all[from.number];
    if (net_.has_unsupported()) return all.at(0);
    net_.fail(site, fmt::format("reads output {} of a layer that has {}; expected one of them",
                                from.number + 1, all.size()));
  }

  KerasOutputs convert(const KerasSite& site, const std::string& prefix) {
    if (site.layer.inner) return read(*site.layer.inner, site.from, prefix + site.layer.name + "/");
    KerasOutputs to;
    if (site.from.empty()) net_.fail(site, "reads nothing; expected the layers it reads");
    const bool known = convert_keras_plain(net_, site, to) || convert_keras_window(net_, site, to) ||
                       convert_keras_join(net_, site, to) || convert_keras_sequence(net_, site, to);
    if (!known) to = {{.inside = net_.unsupported(site)}};
    return to;
  }

  KerasFile keras_;
  KerasConversion net_;
  const GivenValues& given_;
  int inputs_ = 0, calls_ = 0;
};

}  // namespace

ImportedFile keras_json_network(const std::string& text, const std::string& file, const GivenValues& given) {
  return Reader(file, text, given).network();
}

}  // namespace tbdsim
