// A model: layer graphs plus the training program that runs them. A YAML file in graphs/models/ describes its
// variants with parameters, blocks and repeats; read_model_file() reads what is said about them,
// build_model() makes one variant.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "graphs/layer_graph.h"
#include "graphs/optimizer.h"
#include "hwspecs/base/spec_tree.h"

namespace tbdsim {

// One line of the training program: a graph run forward, perhaps backward, perhaps updated, `repeat` times.
// Most models have one; WGAN-GP runs its critic five times for each generator step.
struct TrainingPass {
  std::string graph;
  bool backward = true;
  bool update = true;
  std::int64_t repeat = 1;
};

// Published counts of a variant, checked by a test: trained parameters, multiply-adds for one sample.
struct ExpectedCounts {
  std::int64_t parameters = 0;
  std::int64_t forward_macs = 0;
  std::int64_t training_macs = 0;
  std::string source;
};

struct Variant {
  std::string name;
  std::string description;
  std::string source;
  std::vector<std::string> frameworks;   // those that train this variant unless told otherwise
  std::vector<std::string> also_called;  // names of it in tables of measured runs
  Optimizer optimizer;
  std::map<std::string, SpecTree> parameters;
  std::optional<ExpectedCounts> expected;
};

struct ModelFile {
  std::string name;    // the file's stem
  std::string title;   // "ResNet-50"
  std::string sample;  // what a batch counts, singular: "image"
  std::vector<Variant> variants;
  std::map<std::string, SpecTree> parameters;  // with the values variants override
  SpecTree blocks, graphs, training;
};

struct Model {
  std::string name;
  std::string title;
  std::string sample;
  Variant variant;
  std::map<std::string, LayerGraph> graphs;
  std::vector<TrainingPass> training;
};

// Throws UsageError or SpecError.
[[nodiscard]] ModelFile read_model_file(const std::filesystem::path& file);

// The variant of that name or that is also called so; where the name is empty the one the framework trains,
// or, for no framework or of a single variant, the first. Throws UsageError, with "did you mean" for a name.
[[nodiscard]] const Variant& find_variant(const ModelFile& file, const std::string& variant,
                                          const std::string& framework);

// Expands parameters, blocks and repeats and connects the graphs. Throws SpecError or ModelError.
[[nodiscard]] Model build_model(const ModelFile& file, const Variant& variant);

}  // namespace tbdsim
