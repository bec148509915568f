// A network of Caffe, layer by layer.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "simulate/import/network.h"
#include "simulate/import/prototxt_message.h"

namespace tbdsim {

class PrototxtReader {
 public:
  PrototxtReader(const PrototxtMessage& net, const std::string& file);
  ImportedFile file();

 private:
  // A layer as the functions that convert one take it.
  struct Site {
    const PrototxtMessage& layer;
    std::string type, name;
    std::vector<NetworkTensor> from;

    [[nodiscard]] const NetworkTensor& in() const { return from[0]; }
  };

  [[nodiscard]] std::int64_t number(const std::string& text, const std::string& what,
                                    std::int64_t least) const;
  [[nodiscard]] std::vector<std::int64_t> whole_numbers(const std::vector<std::string>& texts,
                                                        const std::string& what) const;
  [[nodiscard]] std::int64_t number_or(const PrototxtMessage& parameters, const std::string& key,
                                       std::int64_t otherwise, std::int64_t least) const;
  void set_input(const std::string& name, std::vector<std::int64_t> dims);
  [[nodiscard]] std::vector<NetworkTensor> inputs(const PrototxtMessage& layer) const;
  void find_scaled_norms(const PrototxtMessage& net);
  void read(const PrototxtMessage& layer);
  void read_data(const PrototxtMessage& layer, const std::string& type);

  // Value of a key for height or width: of its form with _h or _w, the one of the two it has, or a default.
  [[nodiscard]] std::int64_t side(const PrototxtMessage& parameters, const std::string& key, bool height,
                                  std::int64_t otherwise, std::int64_t least) const;
  [[nodiscard]] WindowSide window(const PrototxtMessage& p, bool height, std::int64_t input,
                                  bool pooling) const;
  [[nodiscard]] std::pair<WindowSide, WindowSide> windows(const PrototxtMessage& p, const Site& site,
                                                          bool pooling) const;
  // The axis of a layer among the sides without the batch; -1 for the batch itself.
  [[nodiscard]] std::int64_t axis(const PrototxtMessage& p, const Site& site, std::int64_t otherwise) const;
  [[nodiscard]] LayerKeys of_weights(const Site& site, LayerKeys keys) const;
  NetworkTensor set_owner(const Site& site, const NetworkTensor& layer);

  NetworkTensor convert(const Site& site);
  NetworkTensor unsupported(const Site& site, const std::string& why = "");
  NetworkTensor like_input(const char* type, const Site& site, LayerKeys keys = {});
  NetworkTensor resized(const char* type, const Site& site, const NetworkTensor& from,
                        const std::vector<std::int64_t>& shape);
  NetworkTensor trained(const Site& site, const NetworkTensor& from, const char* operation,
                        const std::vector<std::int64_t>& dims);

  NetworkTensor batch_norm(const Site& site);
  NetworkTensor concat(const Site& site);
  NetworkTensor convolution(const Site& site);
  NetworkTensor crop(const Site& site);
  NetworkTensor deconvolution(const Site& site);
  NetworkTensor dropout(const Site& site);
  NetworkTensor eltwise(const Site& site);
  NetworkTensor embed(const Site& site);
  NetworkTensor flatten(const Site& site);
  NetworkTensor fully_connected(const Site& site);
  NetworkTensor function(const Site& site);
  NetworkTensor loss(const Site& site);
  NetworkTensor lrn(const Site& site);
  NetworkTensor normalize(const Site& site);
  NetworkTensor permute(const Site& site);
  NetworkTensor pool(const Site& site);
  NetworkTensor power(const Site& site);
  NetworkTensor prelu(const Site& site);
  NetworkTensor relu(const Site& site);
  NetworkTensor reshape(const Site& site);
  NetworkTensor same(const Site& site);
  NetworkTensor scale(const Site& site);
  NetworkTensor sigmoid(const Site& site);
  NetworkTensor slice(const Site& site);
  NetworkTensor tanh(const Site& site);

  NetworkBuilder builder_;
  std::map<std::string, NetworkTensor> blobs_;
  // Layers BatchNorm that a layer Scale follows, with that layer; and the others of these pairs.
  std::map<const PrototxtMessage*, const PrototxtMessage*> scales_;
  std::map<std::string, std::string> owners_;  // layers, by names of their weights
  NetworkTensor last_;
  int losses_ = 0;
};

}  // namespace tbdsim
