// The state of a conversion of a network of Keras: the layers so far, and which of them have a layer's
// weights.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "simulate/import/keras_graph.h"
#include "simulate/import/network.h"

namespace tbdsim {

// The output of a layer. Rows and columns of zeros around an image are not there yet: the window that reads
// it may have them as its pads.
struct KerasTensor {
  NetworkTensor inside;
  std::array<std::int64_t, 4> pads{};  // rows before and behind, columns before and behind
};

// A call of a layer, or of a part of one, as the functions that convert it take it.
struct KerasSite {
  const KerasLayer& layer;
  std::string type, name;
  const JsonNode& config;
  const KerasCall& call;
  std::vector<KerasTensor> from;
  std::string part{};  // of the layer, as the direction of a recurrent one
};

class KerasConversion {
 public:
  KerasConversion(KerasFile& keras, const std::string& file);

  [[nodiscard]] NetworkBuilder& builder() { return builder_; }
  [[nodiscard]] KerasFile& keras() { return keras_; }
  [[nodiscard]] bool has_unsupported() const { return builder_.has_unsupported(); }
  [[nodiscard]] bool channels_first() const { return channels_first_; }

  // Values of a layer's config: a whole number; one for each of height and width, or of a sequence's
  // positions; a choice that is true or false.
  [[nodiscard]] std::int64_t number(const KerasSite& site, std::string_view key, std::int64_t least = 1);
  [[nodiscard]] std::int64_t number_or(const KerasSite& site, std::string_view key, std::int64_t otherwise,
                                       std::int64_t least = 1);
  [[nodiscard]] std::vector<std::int64_t> numbers(const KerasSite& site, std::string_view key,
                                                  std::size_t count, std::int64_t otherwise);
  [[nodiscard]] bool flag(const KerasSite& site, std::string_view key, bool otherwise);
  [[nodiscard]] std::string text(const KerasSite& site, std::string_view key, std::string_view otherwise);
  [[noreturn]] void fail(const KerasSite& site, const std::string& what) const;

  // The tensor that a call reads, with zeros around it where it has some.
  [[nodiscard]] NetworkTensor in(const KerasSite& site, std::size_t number = 0);
  NetworkTensor add(const KerasSite& site, const std::string& type, const std::vector<NetworkTensor>& from,
                    std::vector<std::int64_t> shape, LayerKeys keys = {});
  // The part of an image that has this shape; fixes the sizes of the network.
  NetworkTensor cut(const KerasSite& site, const NetworkTensor& image,
                    const std::vector<std::int64_t>& shape);
  // The keys with those that a layer with weights has: `tied_to` where an earlier call has them, `frozen`
  // where they are not trained. `set_owner` remembers the first.
  [[nodiscard]] LayerKeys of_weights(const KerasSite& site, LayerKeys keys);
  NetworkTensor set_owner(const KerasSite& site, const NetworkTensor& layer);
  NetworkTensor add_trained(const KerasSite& site, const std::string& type,
                            const std::vector<NetworkTensor>& from, std::vector<std::int64_t> shape,
                            LayerKeys keys = {});
  NetworkTensor unsupported(const KerasSite& site, const std::string& why = "");
  // The function that the config names, of a tensor.
  NetworkTensor activate(const KerasSite& site, const NetworkTensor& from);
  NetworkTensor function(const KerasSite& site, const std::string& name, const NetworkTensor& from);
  // An image as positions with its channels as features, and back.
  [[nodiscard]] NetworkTensor by_pixels(const KerasSite& site, const NetworkTensor& image);
  [[nodiscard]] NetworkTensor as_image(const KerasSite& site, const NetworkTensor& pixels,
                                       const std::vector<std::int64_t>& shape);

  // The input of a softmax, whose layer it is; the tensor itself for others.
  [[nodiscard]] NetworkTensor before_softmax(const NetworkTensor& tensor) const;

 private:
  KerasFile& keras_;
  NetworkBuilder builder_;
  bool channels_first_ = false;
  std::map<std::pair<const KerasLayer*, std::string>, std::string> owners_;
  std::map<std::string, NetworkTensor> softmax_;  // inputs, by layers
};

// Sides with channels first, of sides as the file has them.
[[nodiscard]] std::vector<std::int64_t> keras_sides(const KerasConversion& net,
                                                    std::vector<std::int64_t> sides);

// Conversions by kinds of layers. Each returns false for a type that it does not know.
using KerasOutputs = std::vector<KerasTensor>;
bool convert_keras_window(KerasConversion& net, const KerasSite& site, KerasOutputs& to);
bool convert_keras_join(KerasConversion& net, const KerasSite& site, KerasOutputs& to);
bool convert_keras_sequence(KerasConversion& net, const KerasSite& site, KerasOutputs& to);
bool convert_keras_plain(KerasConversion& net, const KerasSite& site, KerasOutputs& to);

}  // namespace tbdsim
