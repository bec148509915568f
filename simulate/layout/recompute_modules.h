// Parts of a block that selective recomputation computes again, by the names of Megatron-Core
// (core/transformer/transformer_config.py, recompute_modules).
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

namespace tbdsim {

//   core_attn    scores and probabilities of attention that keeps them
//   layernorm    the norms before attention and before the feed-forward layer
//   moe_act      activations of experts
//   mla_up_proj  queries, keys and values made of their low-rank forms, and what turns them
//   mlp          the feed-forward layer of a block without experts, with its norm
//   moe          router, exchange of tokens, experts
enum class RecomputeModule : std::uint8_t { core_attn, layernorm, moe_act, mla_up_proj, mlp, moe };
inline constexpr std::array<std::string_view, 6> kRecomputeModuleNames = {
    "core_attn", "layernorm", "moe_act", "mla_up_proj", "mlp", "moe"};

// A set of modules.
class RecomputeModules {
 public:
  constexpr RecomputeModules() = default;
  constexpr RecomputeModules(std::initializer_list<RecomputeModule> modules) {
    for (const RecomputeModule module : modules) add(module);
  }

  constexpr void add(RecomputeModule module) { bits_ |= bit_of(module); }
  [[nodiscard]] constexpr bool has(RecomputeModule module) const { return (bits_ & bit_of(module)) != 0; }
  // True if one module at least is in both.
  [[nodiscard]] constexpr bool meets(RecomputeModules other) const { return (bits_ & other.bits_) != 0; }

  // The modules of both.
  [[nodiscard]] constexpr RecomputeModules with(RecomputeModules other) const {
    other.bits_ |= bits_;
    return other;
  }

  friend constexpr auto operator<=>(const RecomputeModules&, const RecomputeModules&) = default;

 private:
  static constexpr unsigned bit_of(RecomputeModule module) { return 1U << static_cast<unsigned>(module); }
  unsigned bits_ = 0;
};

// Megatron-Core's default.
inline constexpr RecomputeModules kDefaultModules{RecomputeModule::core_attn};

// "mla_up_proj,mlp": the names of a set.
[[nodiscard]] std::string to_text(RecomputeModules modules);

}  // namespace tbdsim
