// Networks in the formats of other tools as model files of tbd-sim.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "simulate/import/imported_file.h"

namespace tbdsim {

// Networks of Paleo (JSON; Qi et al., ICLR 2017) and of Caffe (prototxt). Throw SpecError for another text
// and for layers that tbd-sim has not, with their counts.
[[nodiscard]] ImportedFile paleo_network(const std::string& text, const std::string& file);
[[nodiscard]] ImportedFile prototxt_network(const std::string& text, const std::string& file);

// Contents of an ONNX file, as far as a network needs them.
struct OnnxAttribute {
  std::vector<std::int64_t> integers{};  // of a number: one
  double number = 0;
  std::string text{};
};
struct OnnxNode {
  std::string name{};
  std::string op{};
  std::vector<std::string> inputs{}, outputs{};
  std::map<std::string, OnnxAttribute> attributes{};
};
struct OnnxTensor {
  std::vector<std::int64_t> dims{};
  std::vector<std::int64_t> integers{};           // values of a small tensor of whole numbers
  std::vector<double> numbers{};                  // of a small one of others
  bool real = true;                               // floating-point numbers
  bool computed = false;                          // its numbers follow from their place: no parameter
  bool lower_triangle = false;                    // a mask of what comes after
  std::map<std::string, std::int64_t> trained{};  // parameters that it is or is made of, with their elements
};
// Its values as numbers; empty where they are not known.
[[nodiscard]] std::vector<double> values_of(const OnnxTensor& tensor);
// Whether it is zeros that are no parameter, as exporters write for a layer without a bias.
[[nodiscard]] bool is_untrained_zero(const OnnxTensor& tensor);
struct OnnxInput {
  std::string name{};
  std::vector<std::int64_t> dims{};    // -1: symbolic
  std::vector<std::string> symbols{};  // names of such, one for each dimension
  bool real = true;                    // false: indices, masks
};
struct OnnxGraph {
  std::string file{};
  std::string title{};
  std::int64_t opset = 0;           // of ONNX's own operators; 0: the file does not say
  std::vector<OnnxInput> inputs{};  // without tensors that have values
  std::vector<std::string> outputs{};
  std::map<std::string, OnnxTensor> tensors{};  // weights and constants
  std::vector<OnnxNode> nodes{};                // in order
  std::set<std::string> functions{};            // of the model itself, which nodes may name as their operator
};

// Throws UsageError for a file that cannot be read, SpecError for one that is no ONNX. `file` names it in
// errors.
[[nodiscard]] OnnxGraph read_onnx(const std::filesystem::path& file);
[[nodiscard]] OnnxGraph parse_onnx(std::string_view bytes, const std::string& file);

// `given` may say image_size, for an input whose height and width are symbolic, and any other side that has a
// name.
[[nodiscard]] ImportedFile onnx_network(const OnnxGraph& graph, const GivenValues& given);

}  // namespace tbdsim
