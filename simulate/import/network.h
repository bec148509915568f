// A network as it is read from a file of another tool: layers of tbd-sim in order, each with the shape of its
// output.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "simulate/import/imported_file.h"

namespace tbdsim {

// The output of a layer, or the input: its shape without the batch, channels before pixels.
struct NetworkTensor {
  std::string layer;
  std::vector<std::int64_t> shape;
};

// A window along height or width.
struct WindowSide {
  std::int64_t kernel = 1, stride = 1, before = 0, after = 0, dilation = 1;
  bool round_up = false;  // a last window that is not whole counts

  // Number of outputs for so many inputs; 0 where the window does not fit.
  [[nodiscard]] std::int64_t outputs(std::int64_t inputs) const;
};

using LayerKeys = std::vector<std::pair<std::string, SpecTree>>;

class NetworkBuilder {
 public:
  NetworkBuilder(std::string file, std::string title) : file_(std::move(file)), title_(std::move(title)) {}

  // An input of the network; the first are the samples. Throws SpecError for a shape that no layer takes.
  NetworkTensor input(const std::vector<std::int64_t>& shape, const std::string& name = "data");

  // Adds a layer of tbd-sim with keys beside its name and inputs.
  NetworkTensor add(const std::string& type, std::string_view name, const std::vector<NetworkTensor>& from,
                    std::vector<std::int64_t> shape, LayerKeys keys = {});

  // Layers whose outputs follow from the window: conv2d, max_pool, avg_pool. A window that tbd-sim has no
  // padding for is noted as unsupported.
  NetworkTensor add_window(const std::string& type, std::string_view name, const NetworkTensor& from,
                           const WindowSide& height, const WindowSide& width, std::int64_t channels,
                           LayerKeys keys = {});

  // Whether a layer has the pads of a window over an image of that shape.
  [[nodiscard]] bool has_pads(const WindowSide& height, const WindowSide& width,
                              const std::vector<std::int64_t>& shape) const;

  // The same elements in other sides.
  NetworkTensor add_reshape(std::string_view name, const NetworkTensor& from,
                            const std::vector<std::int64_t>& shape);

  // Counts an operator that no layer of tbd-sim computes; finish() throws then, and names them all.
  // `where` names the first.
  void note_unsupported(const std::string& what, const std::string& where = "");
  [[nodiscard]] bool has_unsupported() const { return !unsupported_.empty(); }
  // Dimensions in the file are numbers that do not follow from the image's sides.
  void fix_shapes() { fixed_shapes_ = true; }
  void note(std::string sentence) { notes_.push_back(std::move(sentence)); }

  // The model's file: the layers that `output` needs, with a loss behind them. Throws SpecError for
  // unsupported operators, listed with their counts, and for a network without layers.
  [[nodiscard]] ImportedFile finish(const NetworkTensor& output, const std::string& tool);

  [[nodiscard]] const std::string& file() const { return file_; }
  [[noreturn]] void fail(const std::string& what) const;

 private:
  struct Layer {
    std::string name;
    std::vector<std::string> from;
    SpecTree entry;
  };
  [[nodiscard]] std::string unique(std::string_view name, const std::string& type);
  [[nodiscard]] std::set<std::string> needed_for(const std::string& layer) const;

  std::string file_, title_;
  std::vector<std::pair<std::string, std::vector<std::int64_t>>> inputs_;
  std::vector<Layer> layers_;
  std::set<std::string> names_;
  std::map<std::string, int> next_;  // of each name: the number that the next layer of that name gets
  struct Unsupported {
    int count = 0;
    std::string first;
  };
  std::map<std::string, Unsupported> unsupported_;
  std::vector<std::string> notes_;
  bool fixed_shapes_ = false;
};

// The sides of an input that are given for a key as "28x28x1", in that order; none where it is not given.
[[nodiscard]] std::optional<std::vector<std::int64_t>> given_sides(const GivenValues& given,
                                                                   const std::string& key,
                                                                   const NetworkBuilder& builder);
// Names of tensors, for "did you mean".
[[nodiscard]] std::vector<std::string> names_of(const std::map<std::string, NetworkTensor>& tensors);
[[nodiscard]] SpecTree spec_number(std::int64_t number);
[[nodiscard]] SpecTree spec_list(const std::vector<SpecTree>& items);
// The product of the sides; kLargestProduct for any larger one.
inline constexpr std::int64_t kLargestProduct = 100'000'000'000;
[[nodiscard]] std::int64_t product_of(const std::vector<std::int64_t>& shape);

}  // namespace tbdsim
