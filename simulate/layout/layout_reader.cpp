#include "simulate/layout/layout_reader.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "hwspecs/base/error.h"
#include "hwspecs/base/spec_reader.h"
#include "hwspecs/base/suggest.h"

namespace tbdsim {
namespace {

constexpr auto kLayoutKeys =
    std::to_array<std::string_view>({"dp", "tp", "pp", "vp", "cp", "ep", "zero", "shard", "reshard",
                                     "sequence_parallel", "uneven", "micro_batch", "recompute", "schedule"});
constexpr auto kShapeKeys = std::to_array<std::string_view>(
    {"layers",     "hidden",     "heads",       "kv_heads", "head_size",   "value_size", "ffn",
     "vocabulary", "positions",  "gated",       "rms_norm", "rotary",      "bias",       "tied",
     "dropout",    "causal",     "q_rank",      "kv_rank",  "rotary_size", "experts",    "experts_per_token",
     "expert_ffn", "shared_ffn", "dense_layers"});
constexpr std::int64_t kMostOfASize = 1'000'000'000;

std::int64_t number_of(std::string_view key, const std::string& value, std::int64_t least,
                       std::int64_t most) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error != std::errc() || end != value.data() + value.size() || number < least || number > most)
    throw UsageError(
        fmt::format("{} {}; expected a whole number from {} to {}", key, in_quotes(value), least, most));
  return number;
}

bool flag_of(std::string_view key, const std::string& value) {
  if (value == "true" || value == "yes") return true;
  if (value == "false" || value == "no") return false;
  throw UsageError(fmt::format("{} {}; expected true or false", key, in_quotes(value)));
}

std::size_t choice_of(std::string_view key, const std::string& value,
                      std::span<const std::string_view> names) {
  std::vector<std::string> known(names.begin(), names.end());
  const auto found = std::find(known.begin(), known.end(), value);
  if (found != known.end()) return static_cast<std::size_t>(found - known.begin());
  throw UsageError(fmt::format("{} {}; expected one of {}{}", key, in_quotes(value), joined(known),
                               did_you_mean(value, known)));
}

std::int64_t* number_in(ParallelLayout& l, std::string_view key) {
  if (key == "dp") return &l.dp;
  if (key == "tp") return &l.tp;
  if (key == "pp") return &l.pp;
  if (key == "vp") return &l.vp;
  if (key == "cp") return &l.cp;
  if (key == "ep") return &l.ep;
  if (key == "shard") return &l.shard;
  if (key == "micro_batch") return &l.micro_batch;
  return nullptr;
}

std::int64_t* number_in(DecoderShape& s, std::string_view key) {
  const std::pair<std::string_view, std::int64_t*> numbers[] = {{"layers", &s.layers},
                                                                {"hidden", &s.hidden},
                                                                {"heads", &s.heads},
                                                                {"kv_heads", &s.kv_heads},
                                                                {"head_size", &s.head_size},
                                                                {"value_size", &s.value_size},
                                                                {"ffn", &s.ffn},
                                                                {"vocabulary", &s.vocabulary},
                                                                {"positions", &s.positions},
                                                                {"q_rank", &s.q_rank},
                                                                {"kv_rank", &s.kv_rank},
                                                                {"rotary_size", &s.rotary_size},
                                                                {"experts", &s.experts},
                                                                {"experts_per_token", &s.experts_per_token},
                                                                {"expert_ffn", &s.expert_ffn},
                                                                {"shared_ffn", &s.shared_ffn},
                                                                {"dense_layers", &s.dense_layers}};
  for (const auto& [name, number] : numbers) {
    if (name == key) return number;
  }
  return nullptr;
}

bool* flag_in(DecoderShape& s, std::string_view key) {
  if (key == "gated") return &s.gated;
  if (key == "rms_norm") return &s.rms_norm;
  if (key == "rotary") return &s.rotary;
  if (key == "bias") return &s.bias;
  if (key == "tied") return &s.tied;
  if (key == "causal") return &s.causal;
  return nullptr;
}

// Runs `set` with each key of the file, whose messages then say where they are.
template <class Set>
void read_keys(const std::filesystem::path& file, std::span<const std::string_view> keys, Set set) {
  const SpecTree tree = read_spec_file(file);
  SpecNode(tree).map([&](SpecMap& m) {
    for (const std::string_view key : keys) {
      const auto node = m.find(key);
      if (!node) continue;
      try {
        set(key, node->text());
      } catch (const UsageError& wrong) {
        throw SpecError(node->mark(), wrong.what());
      }
    }
  });
}

}  // namespace

std::span<const std::string_view> layout_keys() { return kLayoutKeys; }
std::span<const std::string_view> shape_keys() { return kShapeKeys; }

void set_layout(ParallelLayout& l, std::string_view key, const std::string& value) {
  if (std::int64_t* number = number_in(l, key)) {
    *number = number_of(key, value, key == "shard" ? 0 : 1, kMostRanks);
  } else if (key == "zero") {
    l.zero = static_cast<int>(number_of(key, value, 0, 3));
  } else if (key == "reshard") {
    l.reshard = flag_of(key, value);
  } else if (key == "uneven") {
    l.uneven = flag_of(key, value);
  } else if (key == "sequence_parallel") {
    l.sequence_parallel = flag_of(key, value);
  } else if (key == "recompute") {
    l.recompute = static_cast<Recomputation>(choice_of(key, value, kRecomputationNames));
  } else if (key == "schedule") {
    l.order = static_cast<PipelineOrder>(choice_of(key, value, kPipelineOrderNames));
  }
}

void set_shape(DecoderShape& s, std::string_view key, const std::string& value) {
  if (std::int64_t* number = number_in(s, key)) {
    *number = number_of(key, value, 0, kMostOfASize);
  } else if (bool* flag = flag_in(s, key)) {
    *flag = flag_of(key, value);
  } else if (key == "dropout") {
    s.dropout = flag_of(key, value) ? 0.1 : 0;
  }
}

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
  if (s.experts > 0 && (s.experts_per_token < 1 || s.experts_per_token > s.experts || s.expert_ffn < 1))
    throw UsageError(fmt::format("{} experts of {} features with {} for each token; expected 1 to {} of them",
                                 s.experts, s.expert_ffn, s.experts_per_token, s.experts));
  if (s.name.empty()) s.name = "the decoder";
  return s;
}

ParallelLayout read_layout(const std::filesystem::path& file) {
  ParallelLayout layout;
  read_keys(file, kLayoutKeys,
            [&](std::string_view key, const std::string& value) { set_layout(layout, key, value); });
  return layout;
}

DecoderShape read_decoder_shape(const std::filesystem::path& file) {
  DecoderShape shape;
  read_keys(file, kShapeKeys,
            [&](std::string_view key, const std::string& value) { set_shape(shape, key, value); });
  shape.name = file.stem().string();
  return completed(shape);
}

}  // namespace tbdsim
