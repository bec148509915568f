#include "simulate/layout/layout_reader.h"

#include <fmt/format.h>

#include "hwspecs/base/error.h"
#include "hwspecs/base/text_list.h"
#include "simulate/layout/text_key.h"

namespace tbdsim {
namespace {

template <std::int64_t ParallelLayout::*Member, std::int64_t Least = 1>
constexpr auto kCount = set_number<Member, Least, kMostRanks, ParallelLayout>;

void set_recompute(ParallelLayout& layout, std::string_view key, const std::string& value) {
  layout.recompute = static_cast<Recomputation>(choice_of(key, value, kRecomputationNames));
}

void set_modules(ParallelLayout& layout, std::string_view key, const std::string& value) {
  layout.modules = {};
  for (const std::string& name : list_of(value))
    layout.modules.add(static_cast<RecomputeModule>(choice_of(key, name, kRecomputeModuleNames)));
}

void set_schedule(ParallelLayout& layout, std::string_view key, const std::string& value) {
  layout.order = static_cast<PipelineOrder>(choice_of(key, value, kPipelineOrderNames));
}

void set_context(ParallelLayout& layout, std::string_view key, const std::string& value) {
  layout.context = static_cast<ContextExchange>(choice_of(key, value, kContextExchangeNames));
}

constexpr std::int64_t kMostPrefetched = 1'000;
constexpr TextKey<ParallelLayout> kLayoutKeys[] = {
    {"dp", kCount<&ParallelLayout::dp>},
    {"tp", kCount<&ParallelLayout::tp>},
    {"pp", kCount<&ParallelLayout::pp>},
    {"vp", kCount<&ParallelLayout::vp>},
    {"cp", kCount<&ParallelLayout::cp>},
    {"cp_exchange", set_context},
    {"ep", kCount<&ParallelLayout::ep>},
    {"etp", kCount<&ParallelLayout::etp>},
    {"zero", set_number<&ParallelLayout::zero, 0, 3, ParallelLayout>},
    {"shard", kCount<&ParallelLayout::shard, 0>},
    {"reshard", set_flag<&ParallelLayout::reshard, ParallelLayout>},
    {"prefetch", set_number<&ParallelLayout::prefetch, 0, kMostPrefetched, ParallelLayout>},
    {"sequence_parallel", set_flag<&ParallelLayout::sequence_parallel, ParallelLayout>},
    {"uneven", set_flag<&ParallelLayout::uneven, ParallelLayout>},
    {"micro_batch", kCount<&ParallelLayout::micro_batch>},
    {"recompute", set_recompute},
    {"recompute_modules", set_modules},
    {"recompute_layers", kCount<&ParallelLayout::recompute_layers, 0>},
    {"schedule", set_schedule}};
constexpr auto kLayoutNames = names_of(kLayoutKeys);

constexpr std::int64_t kMostOfASize = 1'000'000'000;
template <std::int64_t DecoderShape::*Member>
constexpr auto kSize = set_number<Member, 0, kMostOfASize, DecoderShape>;
template <bool DecoderShape::*Member>
constexpr auto kFlag = set_flag<Member, DecoderShape>;

// The share of what is dropped changes no time: 0.1 stands for any.
void set_dropout(DecoderShape& shape, std::string_view key, const std::string& value) {
  shape.dropout = flag_of(key, value) ? 0.1 : 0;
}

constexpr TextKey<DecoderShape> kShapeKeys[] = {
    {"layers", kSize<&DecoderShape::layers>},
    {"hidden", kSize<&DecoderShape::hidden>},
    {"heads", kSize<&DecoderShape::heads>},
    {"kv_heads", kSize<&DecoderShape::kv_heads>},
    {"head_size", kSize<&DecoderShape::head_size>},
    {"value_size", kSize<&DecoderShape::value_size>},
    {"ffn", kSize<&DecoderShape::ffn>},
    {"vocabulary", kSize<&DecoderShape::vocabulary>},
    {"positions", kSize<&DecoderShape::positions>},
    {"gated", kFlag<&DecoderShape::gated>},
    {"rms_norm", kFlag<&DecoderShape::rms_norm>},
    {"rotary", kFlag<&DecoderShape::rotary>},
    {"bias", kFlag<&DecoderShape::bias>},
    {"tied", kFlag<&DecoderShape::tied>},
    {"dropout", set_dropout},
    {"causal", kFlag<&DecoderShape::causal>},
    {"q_rank", kSize<&DecoderShape::q_rank>},
    {"kv_rank", kSize<&DecoderShape::kv_rank>},
    {"rotary_size", kSize<&DecoderShape::rotary_size>},
    {"experts", kSize<&DecoderShape::experts>},
    {"experts_per_token", kSize<&DecoderShape::experts_per_token>},
    {"expert_ffn", kSize<&DecoderShape::expert_ffn>},
    {"shared_ffn", kSize<&DecoderShape::shared_ffn>},
    {"dense_layers", kSize<&DecoderShape::dense_layers>}};
constexpr auto kShapeNames = names_of(kShapeKeys);

}  // namespace

std::span<const std::string_view> layout_keys() { return kLayoutNames; }
std::span<const std::string_view> shape_keys() { return kShapeNames; }

void set_layout(ParallelLayout& layout, std::string_view key, const std::string& value) {
  set_by_name(kLayoutKeys, layout, key, value);
}

void set_shape(DecoderShape& shape, std::string_view key, const std::string& value) {
  set_by_name(kShapeKeys, shape, key, value);
}

namespace {

// Throws UsageError for a size that means nothing without another one.
void require_partners(const DecoderShape& s) {
  struct Partner {
    std::string_view name;
    std::int64_t number;
    std::string_view other;
    std::int64_t needed;
  };
  const Partner partners[] = {{"q_rank", s.q_rank, "kv_rank", s.kv_rank},
                              {"rotary_size", s.rotary_size, "kv_rank", s.kv_rank},
                              {"experts_per_token", s.experts_per_token, "experts", s.experts},
                              {"expert_ffn", s.expert_ffn, "experts", s.experts},
                              {"shared_ffn", s.shared_ffn, "experts", s.experts},
                              {"dense_layers", s.dense_layers, "experts", s.experts}};
  for (const Partner& p : partners) {
    if (p.number > 0 && p.needed == 0)
      throw UsageError(fmt::format("{} {} without {}; expected both", p.name, p.number, p.other));
  }
  if (s.dense_layers > s.layers)
    throw UsageError(
        fmt::format("dense_layers {} of {} layers; expected at most as many", s.dense_layers, s.layers));
}

}  // namespace

DecoderShape completed(DecoderShape s) {
  const std::pair<std::string_view, std::int64_t> needed[] = {
      {"layers", s.layers}, {"hidden", s.hidden}, {"heads", s.heads}, {"vocabulary", s.vocabulary}};
  for (const auto& [name, number] : needed) {
    if (number < 1) throw UsageError(fmt::format("{} of the decoder is missing; expected at least 1", name));
  }
  if (s.kv_heads == 0) s.kv_heads = s.heads;
  if (s.head_size == 0) {
    if (s.hidden % s.heads != 0)
      throw UsageError(fmt::format("hidden {} cannot be divided by heads {}", s.hidden, s.heads));
    s.head_size = s.hidden / s.heads;
  }
  if (s.heads % s.kv_heads != 0)
    throw UsageError(fmt::format("heads {} cannot be divided by kv_heads {}", s.heads, s.kv_heads));
  if (s.value_size == 0) s.value_size = s.head_size;
  if (s.ffn == 0 && s.experts == 0) s.ffn = 4 * s.hidden;
  require_partners(s);
  if (s.experts > 0 && (s.experts_per_token < 1 || s.experts_per_token > s.experts || s.expert_ffn < 1))
    throw UsageError(fmt::format("{} experts of {} features with {} for each token; expected 1 to {} of them",
                                 s.experts, s.expert_ffn, s.experts_per_token, s.experts));
  if (s.name.empty()) s.name = "the decoder";
  return s;
}

}  // namespace tbdsim
