#include "simulate/prediction/scenario_keys.h"

#include <algorithm>
#include <array>
#include <stdexcept>

#include <fmt/format.h>

#include "hwspecs/base/error.h"
#include "hwspecs/base/number.h"
#include "hwspecs/base/quantity_text.h"
#include "hwspecs/base/suggest.h"
#include "hwspecs/synthetic_machine.h"

namespace tbdsim {
namespace {

constexpr std::int64_t kMostGpus = 1000;  // of a machine
constexpr std::int64_t kMostMachines = 1'000'000;
constexpr std::int64_t kMostWorkers = 1024;  // of a machine

double gradient_bytes(const std::string& text) {
  constexpr double kHalf = 2;
  constexpr double kWhole = 4;
  if (text == "fp16") return kHalf;
  if (text == "fp32") return kWhole;
  throw UsageError("gradients: " + in_quotes(text) + "; expected fp16 or fp32");
}

double part_of(std::string_view key, const std::string& text) {
  const auto part = parse_number(text);
  if (part && *part > 0 && *part <= 1) return *part;
  throw UsageError(
      fmt::format("{}: {}; expected the part that is sent, above 0 and up to 1", key, in_quotes(text)));
}

using Value = const std::string&;

template <auto member>
void set_name(Scenario& s, Value v) {
  s.*member = v;
}

template <auto member>
void set_of_cluster(Scenario& s, Value v) {
  s.cluster.*member = v;
}

void set_batch(Scenario& s, Value v) { s.batch = count_of("batch", v, kMostSamples); }
void set_tokens(Scenario& s, Value v) { s.tokens = count_of("tokens", v, kMostSamples); }

// A size of the model: `name` is the key's own.
void set_size(Scenario& s, const char* name, Value v) { s.sizes[name] = count_of(name, v, kMostSamples); }
void set_sequence_length(Scenario& s, Value v) { set_size(s, "sequence_length", v); }
void set_image_size(Scenario& s, Value v) { set_size(s, "image_size", v); }
void set_rois(Scenario& s, Value v) { set_size(s, "rois", v); }

void set_input(Scenario& s, Value v) {
  const std::vector<std::string> known{std::string(kSyntheticInput), std::string(kRealInput)};
  if (std::find(known.begin(), known.end(), v) == known.end())
    throw UsageError("input: " + in_quotes(v) + "; expected " + joined(known) + did_you_mean(v, known));
  s.input.source = v;
}

void set_input_workers(Scenario& s, Value v) {
  const auto number = parse_whole_number(v);
  if (!number || *number < 0 || *number > kMostWorkers) {
    throw UsageError(
        fmt::format("input_workers: {} is no whole number from 0 (the training loop decodes) to {}",
                    in_quotes(v), kMostWorkers));
  }
  s.input.workers = *number;
}

// A quantity above 0 of that key.
template <class Quantity>
Quantity quantity_above_zero(const char* key, const std::string& text, const char* expected) {
  Quantity quantity;
  try {
    quantity = parse_quantity<Quantity>(with_space(text));
  } catch (const std::invalid_argument& wrong) {
    throw UsageError(std::string(key) + ": " + wrong.what());
  }
  if (!(quantity > Quantity(0)))
    throw UsageError(std::string(key) + ": " + in_quotes(text) + "; expected " + expected);
  return quantity;
}

void set_input_time(Scenario& s, Value v) {
  s.input.sample_time = quantity_above_zero<Seconds>("input_time", v, "a time above 0, as 4 ms");
}
void set_input_bytes(Scenario& s, Value v) {
  s.input.sample_bytes = quantity_above_zero<Bytes>("input_bytes", v, "a size above 0, as 110 kB");
}
void set_storage(Scenario& s, Value v) {
  s.input.storage = quantity_above_zero<BytesPerSecond>("host.storage", v, "a rate above 0, as 500 MB/s");
}
void set_cores(Scenario& s, Value v) { s.input.cores = count_of("host.cores", v, kMostWorkers); }
void set_copies(Scenario& s, Value v) {
  const auto* const found = std::find(kInputCopiesNames.begin(), kInputCopiesNames.end(), v);
  if (found == kInputCopiesNames.end()) {
    const std::vector<std::string> known(kInputCopiesNames.begin(), kInputCopiesNames.end());
    throw UsageError("host.copies: " + in_quotes(v) + "; expected " + joined(known) + did_you_mean(v, known));
  }
  s.input.copies = static_cast<InputCopies>(found - kInputCopiesNames.begin());
}

std::vector<std::string> parts_of(std::string_view key, const std::string& text) {
  std::vector<std::string> parts;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    parts.push_back(text.substr(at, end - at));
    if (parts.back().empty())
      throw UsageError(
          fmt::format("{}: {} has an empty part; expected names as attention,mlp", key, in_quotes(text)));
    at = end + 1;
  }
  return parts;
}

void set_optimizer(Scenario& s, Value v) { choose_optimizer(s.training, v); }
void set_accumulate(Scenario& s, Value v) {
  s.training.accumulate = count_of("accumulate", v, kMostAccumulated);
}
void set_lora(Scenario& s, Value v) { s.training.fine_tuning.rank = count_of("lora", v, kMostRank); }
void set_lora_layers(Scenario& s, Value v) { s.training.fine_tuning.adapted = parts_of("lora_layers", v); }
void set_freeze(Scenario& s, Value v) { s.training.fine_tuning.frozen = parts_of("freeze", v); }
void set_recompute(Scenario& s, Value v) { choose_recompute(s.training, v); }
void set_offload(Scenario& s, Value v) { choose_offload(s.training, v); }
void set_loss(Scenario& s, Value v) { choose_loss(s.training, v); }
void set_attention(Scenario& s, Value v) { choose_attention(s.training, v); }

void set_gpus(Scenario& s, Value v) { s.cluster.gpus = static_cast<int>(count_of("gpus", v, kMostGpus)); }
void set_machines(Scenario& s, Value v) {
  s.cluster.machines = static_cast<int>(count_of("machines", v, kMostMachines));
}
void set_network(Scenario& s, Value v) { s.cluster.network = with_space(v); }
void set_gradients(Scenario& s, Value v) { s.cluster.gradient_bytes = gradient_bytes(v); }
void set_compression(Scenario& s, Value v) { s.cluster.compression = part_of("compression", v); }

constexpr std::array<ScenarioKey, 36> kKeys = {{
    {"model", set_name<&Scenario::model>},
    {"framework", set_name<&Scenario::framework>},
    {"variant", set_name<&Scenario::variant>},
    {"precision", set_name<&Scenario::precision>},
    {"dataset", set_name<&Scenario::dataset>},
    {"profile", set_name<&Scenario::profile>},
    {"target", set_name<&Scenario::target>},
    {"sequence_length", set_sequence_length},
    {"image_size", set_image_size},
    {"rois", set_rois},
    {"gpu", set_name<&Scenario::gpu>},
    {"batch", set_batch},
    {"tokens", set_tokens},
    {"input", set_input},
    {"input_workers", set_input_workers},
    {"input_time", set_input_time},
    {"input_bytes", set_input_bytes},
    {"host.cores", set_cores},
    {"host.storage", set_storage},
    {"host.copies", set_copies},
    {"optimizer", set_optimizer},
    {"accumulate", set_accumulate},
    {"lora", set_lora},
    {"lora_layers", set_lora_layers},
    {"freeze", set_freeze},
    {"recompute", set_recompute},
    {"offload", set_offload},
    {"loss", set_loss},
    {"attention", set_attention},
    {"machine", set_of_cluster<&Cluster::machine>, true},
    {"gpus", set_gpus, true},
    {"machines", set_machines, true},
    {"network", set_network, true},
    {"exchange", set_of_cluster<&Cluster::method>, true},
    {"gradients", set_gradients, true},
    {"compression", set_compression, true},
}};

}  // namespace

std::int64_t count_of(std::string_view key, const std::string& text, std::int64_t most) {
  const auto number = parse_whole_number(text);
  if (number && *number >= 1 && *number <= most) return *number;
  throw UsageError(fmt::format("{}: {} is no whole number from 1 to {}", key, in_quotes(text), most));
}

std::span<const ScenarioKey> scenario_keys() { return kKeys; }

const ScenarioKey* find_scenario_key(std::string_view name) {
  if (name == "seq_len") name = "sequence_length";  // as the flag calls it
  const auto found =
      std::find_if(kKeys.begin(), kKeys.end(), [&](const ScenarioKey& key) { return key.name == name; });
  return found == kKeys.end() ? nullptr : &*found;
}

std::vector<std::string> scenario_key_names() {
  std::vector<std::string> names;
  for (const ScenarioKey& key : kKeys) names.emplace_back(key.name);
  return names;
}

}  // namespace tbdsim
