// The layers of a network of Keras as its JSON has them, each with the calls in which it is used.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "graphs/captured/json_node.h"

namespace tbdsim {

// One output of one call of a layer.
struct KerasOutput {
  std::size_t layer = 0;
  std::size_t call = 0;
  std::size_t number = 0;
};

struct KerasCall {
  std::vector<KerasOutput> from;
  bool causal = false;  // an attention that sees no later positions
};

struct KerasModel;

struct KerasLayer {
  std::string type, name;
  const JsonNode* config = nullptr;
  std::vector<KerasCall> calls;
  std::shared_ptr<const KerasModel> inner;  // of a model inside
};

struct KerasModel {
  std::string name;
  std::vector<KerasLayer> layers;
  std::vector<std::size_t> inputs;  // layers that are its inputs; none where the file does not show them
  std::vector<KerasOutput> outputs;
  const JsonNode* input_shape = nullptr;  // what the file says of a model that shows no input, if it does

  // Calls in an order in which each comes after those that it reads: layers, and numbers of their calls.
  std::vector<std::pair<std::size_t, std::size_t>> order;
};

// A parsed file: values that layers refer to, and the model outside of all others.
class KerasFile {
 public:
  // Reads `model.to_json()` of Keras 2 and 3, `model.get_config()`, and TensorFlow.js' model.json. Throws
  // SpecError for another text, with the place in it.
  KerasFile(const std::string& file, const std::string& text);

  [[nodiscard]] const KerasModel& model() const { return *model_; }
  // The value of a key of a map; null where it has no such key or null there.
  [[nodiscard]] const JsonNode* find(const JsonNode& map, std::string_view key);
  // The same of a key that it must have.
  [[nodiscard]] const JsonNode& require(const JsonNode& map, std::string_view key);
  [[nodiscard]] const JsonNode& item(const JsonNode& list, std::size_t index);
  // A class and its config, as layers that are settings of others have them.
  struct Part {
    std::string type;
    const JsonNode* config = nullptr;
  };
  [[nodiscard]] Part part(const JsonNode& value);

 private:
  const JsonNode& keep(JsonNode node) { return nodes_.emplace_back(node); }
  void parse(const std::string& file, const std::string& text);
  [[nodiscard]] const JsonNode& model_in(const JsonNode& root);
  [[nodiscard]] KerasLayer layer(const JsonNode& value);
  [[nodiscard]] KerasModel read_model(const JsonNode& value);
  void read_chain(KerasModel& model, const JsonNode& config);
  void read_graph(KerasModel& model, const JsonNode& config, const std::vector<const JsonNode*>& layers);

  std::deque<JsonDocument> documents_;
  std::deque<JsonNode> nodes_;  // which later ones refer to
  std::shared_ptr<const KerasModel> model_;
};

}  // namespace tbdsim
