// Options that several commands share: how they are added to a command line, and what their texts mean. All
// are texts as typed, empty where not given; what reads them throws UsageError.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

#include "hwspecs/base/file.h"
#include "hwspecs/base/table.h"
#include "hwspecs/base/text_list.h"
#include "simulate/prediction/prediction.h"
#include "simulate/workload/spec_cache.h"

namespace tbdsim {

// The model and how it is trained.
struct ModelOptions {
  std::string model;
  std::string framework;
  std::string variant;
  std::string precision;
  std::string seq_len;     // sizes of the model, its own where empty
  std::string image_size;  // "299" or "600x800"
  std::string rois;
};

// Where samples come from, as texts of scenario_keys.h.
struct InputOptions {
  std::string input;
  std::string workers;
  std::string time;
  std::string bytes;
  std::string cores;
  std::string storage;
  std::string copies;
};

// The weights that are trained and how, as texts of scenario_keys.h.
struct TrainingOptions {
  std::string optimizer;
  std::string accumulate;
  std::string lora;
  std::string lora_layers;
  std::string freeze;
  std::string recompute;
  std::string loss;
  std::string attention;
  std::string offload;
};

// The model with the GPU, the batch and the data it is trained on.
struct ScenarioOptions : ModelOptions {
  std::string suite;  // instead of the model, of commands that have add_suite_option()
  std::string gpu;
  std::string batch;
  std::string tokens;   // instead of the batch
  std::string dataset;  // instead of the variant's
  std::string profile;  // empty: what suits the GPU best
  TrainingOptions training;
  InputOptions input;  // of commands that have add_input_options()
};

// GPUs and machines that train together, as texts of scenario_keys.h.
struct ClusterOptions {
  std::string machine;
  std::string gpus;
  std::string machines;
  std::string network;
  std::string sync_method;
  std::string gradients;
  std::string compression;
};

struct OutputOptions {
  std::string format;  // empty: the command's own
  std::string file;    // instead of standard output
};

// --model is the command's own: an option here, an argument there.
void add_model_options(CLI::App& app, ModelOptions& options);
void add_profile_option(CLI::App& app, std::string& profile);
void add_scenario_options(CLI::App& app, ScenarioOptions& options);
void add_suite_option(CLI::App& app, ScenarioOptions& options);
void add_input_options(CLI::App& app, InputOptions& options);
void add_cluster_options(CLI::App& app, ClusterOptions& options);
void add_output_file(CLI::App& app, OutputOptions& options);
void add_output_options(CLI::App& app, OutputOptions& options, const std::string& format = "table");

[[nodiscard]] Cluster cluster_for(const ClusterOptions& options);

// The index of an option's value among the allowed ones; "did you mean".
[[nodiscard]] std::size_t choice(std::string_view option, const std::string& value,
                                 const std::vector<std::string>& allowed);

// "global_batch" -> "--global-batch".
[[nodiscard]] std::string flag_of_key(std::string_view key);

inline constexpr std::string_view kEpochsHelp =
    "that a run takes to the target at its batch (default: as measured for it)";
// The epochs that --epochs gives; 0 where it is not given.
[[nodiscard]] double given_epochs(const std::string& text);

// 1 to `most`.
[[nodiscard]] std::int64_t whole_number(std::string_view option, const std::string& text, std::int64_t most);

[[nodiscard]] Format format_of(const OutputOptions& options, Format unless_said = Format::table);

// The sizes given. With several models each takes those it has; a single model must have every one.
[[nodiscard]] Sizes sizes_for(const ModelOptions& options, const ModelFile& model);

// One scenario for each model and framework given; all models where none is named. Also throws ModelError and
// SpecError.
[[nodiscard]] std::vector<Scenario> scenarios_for(const ScenarioOptions& options, SpecCache& specs);

// That of one model on one framework. `what` begins the message where there are several: "a trace is of one
// iteration".
[[nodiscard]] Scenario scenario_for(const ScenarioOptions& options, SpecCache& specs, std::string_view what);

// Runs `write` on the output file, which then appears whole, or on `out`.
template <class Write>
void write_output(const OutputOptions& options, std::ostream& out, Write write) {
  if (options.file.empty()) {
    write(out);
    return;
  }
  AtomicFile file(options.file);
  write(file.stream());
  file.commit();
}

}  // namespace tbdsim
