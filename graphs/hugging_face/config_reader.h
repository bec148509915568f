// A config.json of Hugging Face transformers: which model of the catalogue it is another size of, and which.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "graphs/model.h"

namespace tbdsim {

struct HuggingFaceConfig {
  std::string path;
  std::string architecture;                       // "LlamaForCausalLM"
  std::string model;                              // of the catalogue: "llama"
  std::string variant;                            // of that model, or a member of its family
  std::map<std::string, std::string> parameters;  // and sizes that replace the variant's
};

// True for a JSON file, not compressed, that names architectures or a type of model.
[[nodiscard]] bool is_config_file(const std::filesystem::path& file);

// Throws UsageError for a file that cannot be read or is too large; SpecError, which names the place, for an
// architecture that is not known, for a key that is missing or out of range, and for a value that the
// catalogue's model does not have.
[[nodiscard]] HuggingFaceConfig read_config_file(const std::filesystem::path& file);

// The catalogue's model, which `base` is, in the config's size.
[[nodiscard]] ModelFile model_of_config(const HuggingFaceConfig& config, ModelFile base);

}  // namespace tbdsim
