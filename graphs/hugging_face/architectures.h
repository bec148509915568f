// Architectures of Hugging Face transformers that the catalogue has a model for.
#pragma once

#include <span>
#include <string_view>

#include "graphs/hugging_face/config_values.h"

namespace tbdsim {

struct Architecture {
  std::string_view name;  // "LlamaForCausalLM"
  std::string_view
      model_type;            // "llama": of a config that names no architecture, the first of a type is meant
  std::string_view model;    // of the catalogue
  std::string_view variant;  // of the model, or a member of its family
  void (*read)(ConfigValues& values);
};

[[nodiscard]] std::span<const Architecture> architectures();

}  // namespace tbdsim
