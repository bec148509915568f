// The weights of a model that are trained: all, all but frozen ones, or only low-rank adapters beside frozen
// products (LoRA: Hu et al., arXiv 2106.09685).
//
//   y = W x + scale * B (A x)      W frozen; A of `rank` rows, B of `rank` columns are trained
//
// Layers are chosen by parts of their names: `attention` means every layer that has it between slashes, as
// layer3/attention/query, and `query` that one of each block.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graphs/model.h"

namespace tbdsim {

inline constexpr std::string_view kAllProducts = "all";  // of repeated blocks; not the scores of words

struct FineTuning {
  std::int64_t rank = 0;               // of adapters; 0: there are none
  std::vector<std::string> adapted{};  // products that have one; empty: "attention"
  std::vector<std::string> frozen{};   // layers whose weights are not trained; beside adapters all are

  friend auto operator<=>(const FineTuning&, const FineTuning&) = default;
};

// The model with frozen weights and adapters: an adapted product is named `NAME/base` and frozen, its adapter
// is the products `NAME/lora_A` and `NAME/lora_B` and the scaling `NAME/lora`, and the sum of both is NAME.
// Throws UsageError, with "did you mean", where no layer of a trained graph has such a part in its name.
[[nodiscard]] Model fine_tuned(Model model, const FineTuning& how);

}  // namespace tbdsim
