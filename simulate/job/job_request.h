// A training job on a cluster as it is asked for: names that are not looked up yet, numbers, a layout. Its
// parts are set by name from text: of flags, columns of a table, a YAML file, axes of a sweep, a URL.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "simulate/layout/layout.h"
#include "simulate/plan/stack.h"

namespace tbdsim {

using KeyValue = std::pair<std::string, std::string>;

struct JobRequest {
  std::string model;  // a name or a file; empty where `shape` is given
  DecoderShape shape;
  std::string gpu;             // empty: the machine's
  std::string machine;         // empty: the GPU's usual one
  std::string network;         // empty: the machine's
  std::string precision;       // empty: bf16; of a captured step as captured
  bool fp8_attention = false;  // with fp8 or nvfp4: attention in one kernel computes in fp8
  std::string stack{kDefaultStack};
  std::string profile;
  std::int64_t leaf_gpus = 0;   // below one leaf switch; 0: those of a machine where it is oversubscribed
  double oversubscription = 1;  // of the network above leaf switches
  Job job{.gpus = 8, .sequence = 0};     // sequence 0: the model's own length
  bool search = false;                   // what is not said of the layout is searched
  std::optional<ParallelLayout> layout;  // none: to be searched
  std::vector<KeyValue> said;            // all that set_job() was told, in this order
};

enum class JobKeyGroup { model, hardware, batch, training, layout, stack, shape };

struct JobKey {
  std::string_view name;  // "global_batch"; a flag has hyphens
  JobKeyGroup group;
  std::string_view help;
};
[[nodiscard]] std::span<const JobKey> job_keys();
// The values of `precision`.
[[nodiscard]] std::span<const std::string_view> job_precisions();
[[nodiscard]] bool is_job_key(std::string_view name);
// Keys of a job in place of one of a run on one GPU: lora_rank for lora. Empty where there is none.
[[nodiscard]] std::span<const std::string_view> job_keys_for(std::string_view key_of_run);

// Sets what the key names. Throws UsageError for an unknown key, with "did you mean", and for a value out of
// range.
void set_job(JobRequest& request, std::string_view key, const std::string& value);

// The keys of a group that a request gives.
[[nodiscard]] std::vector<KeyValue> said_of(const JobRequest& request, JobKeyGroup group);

// Sets what a YAML file of such keys says. Throws SpecError.
void read_job(JobRequest& request, const std::filesystem::path& file);

}  // namespace tbdsim
