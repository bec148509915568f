#include "simulate/cli/commands/options.h"

#include <algorithm>
#include <span>

#include <fmt/format.h>

#include "graphs/suite.h"
#include "hwspecs/base/error.h"
#include "hwspecs/base/number.h"
#include "hwspecs/base/suggest.h"
#include "simulate/prediction/scenario_keys.h"
#include "simulate/workload/parallel.h"

namespace tbdsim {
namespace {

constexpr const char* kSuite = "tbd";  // the default for --model

// The batch; 1 with --tokens.
std::int64_t batch_of(const ScenarioOptions& options) {
  if (!options.tokens.empty()) {
    if (!options.batch.empty()) throw UsageError("--batch and --tokens are both given; expected one of them");
    if (options.model.empty() || options.model == "all") {
      throw UsageError("--tokens counts the steps of one model's sequences; expected a --model");
    }
    return 1;
  }
  if (options.batch.empty()) {
    throw UsageError(fmt::format("--batch is missing; expected a whole number, 1 to {}", kMostSamples));
  }
  return whole_number("--batch", options.batch, kMostSamples);
}

constexpr std::int64_t kLongestSide = 100'000;
constexpr std::int64_t kLongestSequence = 1'000'000;
constexpr std::int64_t kMostRegions = 1'000'000;

// "299" -> image_size or image_height and image_width, "600x800" -> those two.
Sizes image_sizes(const ModelFile& model, const std::string& text) {
  const std::size_t by = text.find('x');
  const std::int64_t height = whole_number("--image-size", text.substr(0, by), kLongestSide);
  const std::int64_t width =
      by == std::string::npos ? height : whole_number("--image-size", text.substr(by + 1), kLongestSide);
  if (has_size(model, "image_height")) return {{"image_height", height}, {"image_width", width}};
  if (height != width) {
    throw UsageError(fmt::format("--image-size: {} takes square images; expected one number", model.name));
  }
  return {{"image_size", height}};
}

void require_gpu(const ScenarioOptions& options) {
  if (options.gpu.empty())
    throw UsageError("--gpu is missing; expected a name ('tbd-sim list gpus') or a YAML file");
}

// The frameworks to predict a model for where none is named: those that train the option's variant (any
// variant without one); where none trains it, the first version of every framework.
std::vector<std::string> frameworks_for(const std::string& asked, const ModelFile& model, SpecCache& specs) {
  std::vector<std::string> frameworks;
  for (const Variant& variant : model.variants) {
    if (!asked.empty() && &variant != &find_variant(model, asked, "")) continue;
    for (const std::string& framework : variant.frameworks) {
      if (std::find(frameworks.begin(), frameworks.end(), framework) == frameworks.end())
        frameworks.push_back(framework);
    }
  }
  if (!frameworks.empty()) return frameworks;
  frameworks = specs.catalog().names(Kind::framework);
  std::erase_if(frameworks, [&](const std::string& name) { return specs.framework(name)->family != name; });
  return frameworks;
}

// The option's model; all of the catalogue for "all", those of the suite without an option. Each in the
// option's variant and framework, where the suite names none.
std::vector<SuiteModel> models_for(const ScenarioOptions& options, SpecCache& specs) {
  if (!options.model.empty() && !options.suite.empty())
    throw UsageError("--suite and --model are both given; expected one of them");
  std::vector<SuiteModel> models;
  if (options.model == "all") {
    for (std::string& name : specs.catalog().names(Kind::model)) models.push_back({std::move(name), "", ""});
  } else if (!options.model.empty()) {
    models.push_back({options.model, "", ""});
  } else {
    models =
        read_suite(specs.catalog().find(Kind::suite, options.suite.empty() ? kSuite : options.suite)).models;
  }
  for (SuiteModel& model : models) {
    if (model.variant.empty()) model.variant = options.variant;
  }
  return models;
}

// True if the suite shows this model on a framework of the option's family, or if none is asked for.
bool shows(const SuiteModel& model, const std::string& asked, SpecCache& specs) {
  if (model.framework.empty() || asked.empty()) return true;
  return specs.framework(model.framework)->family == specs.framework(asked)->family;
}

// The framework asked for, by its name in the catalogue or its path; empty where none is.
std::string framework_asked_for(const ScenarioOptions& options, SpecCache& specs) {
  const std::string& asked = options.framework;
  return asked.empty() || is_path(asked) ? asked : specs.framework(asked)->name;
}

// True if the framework trains some variant of the model; also true for a framework given as a file.
bool trains(const ModelFile& model, const std::string& framework) {
  if (framework.empty() || is_path(framework)) return true;
  return std::any_of(model.variants.begin(), model.variants.end(), [&](const Variant& variant) {
    return std::find(variant.frameworks.begin(), variant.frameworks.end(), framework) !=
           variant.frameworks.end();
  });
}

void set_if_given(Scenario& scenario, std::string_view key, const std::string& value) {
  if (!value.empty()) find_scenario_key(key)->set(scenario, value);
}

SampleInput input_for(const InputOptions& options) {
  Scenario scenario;
  set_if_given(scenario, "input", options.input);
  set_if_given(scenario, "input_workers", options.workers);
  set_if_given(scenario, "input_time", options.time);
  set_if_given(scenario, "input_bytes", options.bytes);
  set_if_given(scenario, "host.cores", options.cores);
  set_if_given(scenario, "host.storage", options.storage);
  set_if_given(scenario, "host.copies", options.copies);
  return scenario.input;
}

TrainingChoices training_for(const TrainingOptions& options) {
  if (options.lora.empty() && !options.lora_layers.empty())
    throw UsageError("--lora-layers names layers of adapters; expected a --lora RANK");
  Scenario scenario;
  set_if_given(scenario, "optimizer", options.optimizer);
  set_if_given(scenario, "accumulate", options.accumulate);
  set_if_given(scenario, "lora", options.lora);
  set_if_given(scenario, "lora_layers", options.lora_layers);
  set_if_given(scenario, "freeze", options.freeze);
  set_if_given(scenario, "recompute", options.recompute);
  set_if_given(scenario, "offload", options.offload);
  set_if_given(scenario, "loss", options.loss);
  set_if_given(scenario, "attention", options.attention);
  return scenario.training;
}

// Reads the files of the models, the GPU and its profile into the cache, several at a time. Errors are thrown
// at the next look-up.
void read_all(std::span<const SuiteModel> models, const std::string& gpu, const std::string& profile,
              SpecCache& specs) {
  for_each_index(models.size() + 1, [&](std::size_t i) {
    try {
      if (i == 0) {
        (void)specs.profile_for({gpu, specs.gpu(gpu)}, profile);
      } else {
        (void)specs.model(models[i - 1].model);
      }
    } catch (const Error&) {
    }
  });
}

}  // namespace

void add_model_options(CLI::App& app, ModelOptions& options) {
  app.add_option("--framework", options.framework, "a framework (default: those that train the model)");
  app.add_option("--variant", options.variant, "a variant of the model (default: the framework's)");
  app.add_option("--precision", options.precision,
                 "one of 'tbd-sim list precisions', as bf16 or default (without it: as captured, or fp32)");
  app.add_option("--seq-len", options.seq_len,
                 "steps of every sequence (default: the lengths of the data set)");
  app.add_option("--image-size", options.image_size,
                 "pixels of every image, 299 or 600x800 (height x width)");
  app.add_option("--rois", options.rois, "regions of interest in every image");
}

namespace {

void add_training_options(CLI::App& app, TrainingOptions& options) {
  app.add_option("--optimizer", options.optimizer,
                 "one of 'tbd-sim list optimizers' (default: the variant's)");
  app.add_option("--accumulate", options.accumulate,
                 "batches whose gradients are added up before an update (default 1)");
  app.add_option("--lora", options.lora,
                 "rank of low-rank adapters, which alone are trained (default: all weights are)");
  app.add_option(
      "--lora-layers", options.lora_layers,
      "parts of names of products that have one, as query,value or mlp, or all (default attention)");
  app.add_option("--freeze", options.freeze,
                 "parts of names of layers that are not trained, as embedding,layer0");
  app.add_option("--recompute", options.recompute,
                 "activations computed again: none, full (of blocks), selective (of attention) or segments "
                 "(default: as the framework does)");
  app.add_option("--offload", options.offload,
                 "what is on the host between its uses: none, activations or optimizer");
  app.add_option("--loss", options.loss,
                 "kernels of a cross entropy over a vocabulary: eager, fused, chunked, vocabulary_parallel, "
                 "fused_linear (Liger) or cut (default: the framework's)");
  app.add_option(
      "--attention", options.attention,
      "kernels of attention: fused (PyTorch's choice), math, eager, memory_efficient, flash, flash3 "
      "or cudnn (default: the framework's)");
}

}  // namespace

void add_profile_option(CLI::App& app, std::string& profile) {
  app.add_option("--profile", profile,
                 "source of kernel times (default: the GPU's, its architecture's, or the generic one)");
}

void add_scenario_options(CLI::App& app, ScenarioOptions& options) {
  add_model_options(app, options);
  app.add_option("--gpu", options.gpu, "a GPU of 'tbd-sim list gpus', or a YAML file");
  app.add_option("--batch", options.batch, "samples in one iteration on one GPU");
  app.add_option("--tokens", options.tokens,
                 "instead of --batch: steps of all sequences of an iteration, each as long as the longest");
  app.add_option("--dataset", options.dataset, "a data set, or a YAML file (default: the variant's)");
  add_profile_option(app, options.profile);
  add_training_options(app, options.training);
}

void add_suite_option(CLI::App& app, ScenarioOptions& options) {
  app.add_option("--suite", options.suite,
                 "instead of a model: a suite of 'tbd-sim list suites', or a YAML file (default tbd)");
}

void add_input_options(CLI::App& app, InputOptions& options) {
  app.add_option(
      "--input", options.input,
      "synthetic (no sample is decoded) or real (default: as the framework's runs; real with either "
      "of the next two)");
  app.add_option(
      "--input-workers", options.workers,
      "threads or processes of a machine that decode; 0: the training loop does (default: those of "
      "the framework's loader)");
  app.add_option(
      "--input-time", options.time,
      "in which one of them reads, decodes and augments a sample, as 6.5ms (default: the data set's)");
  app.add_option("--input-bytes", options.bytes,
                 "of a sample in storage, as 110kB (default: the data set's)");
  app.add_option("--host-cores", options.cores, "CPU cores of a machine (default: the --machine's)");
  app.add_option("--host-storage", options.storage,
                 "at which a machine reads samples, as 500MB/s (default: they are in its memory)");
  app.add_option(
      "--host-copies", options.copies,
      "of batches to the GPU: overlapped with kernels, pinned or pageable between iterations (default: "
      "uncounted)");
}

void add_cluster_options(CLI::App& app, ClusterOptions& options) {
  app.add_option("--machine", options.machine,
                 "a machine of 'tbd-sim list machines', or a YAML file (default: a server of which only "
                 "--network is known)");
  app.add_option("--gpus", options.gpus, "GPUs in each machine (default 1)");
  app.add_option("--machines", options.machines, "machines (default 1)");
  app.add_option("--network", options.network,
                 "between machines: a link, a file or a rate as '25 Gbit/s'; of one machine how its GPUs are "
                 "joined, as pcie3_host or nvlink");
  app.add_option("--exchange", options.sync_method,
                 "how gradients are exchanged (default: the framework's way)");
  app.add_option("--gradients", options.gradients, "fp16 or fp32, as they are sent (default: as stored)");
  app.add_option("--compression", options.compression, "part of them that is sent, 0.01 to 1 (default 1)");
}

void add_output_file(CLI::App& app, OutputOptions& options) {
  app.add_option("-o,--output", options.file, "write to this file instead of standard output");
}

void add_output_options(CLI::App& app, OutputOptions& options, const std::string& format) {
  app.add_option("--format", options.format, "table, json or csv (default " + format + ")");
  add_output_file(app, options);
}

Cluster cluster_for(const ClusterOptions& options) {
  Scenario scenario;
  const auto set = [&](const char* key, const std::string& value) { set_if_given(scenario, key, value); };
  set("machine", options.machine);
  set("gpus", options.gpus);
  set("machines", options.machines);
  set("network", options.network);
  set("exchange", options.sync_method);
  set("gradients", options.gradients);
  set("compression", options.compression);
  return scenario.cluster;
}

std::size_t choice(std::string_view option, const std::string& value,
                   const std::vector<std::string>& allowed) {
  const auto found = std::find(allowed.begin(), allowed.end(), value);
  if (found != allowed.end()) return static_cast<std::size_t>(found - allowed.begin());
  if (value.empty())
    throw UsageError(fmt::format("{}: says not of what; expected one of {}", option, joined(allowed)));
  throw UsageError(fmt::format("{}: {} is unknown; expected one of {}{}", option, in_quotes(value),
                               joined(allowed), did_you_mean(value, allowed)));
}

std::string flag_of_key(std::string_view key) {
  std::string flag = "--" + std::string(key);
  std::replace(flag.begin() + 2, flag.end(), '_', '-');
  return flag;
}

double given_epochs(const std::string& text) {
  if (text.empty()) return 0;
  const auto epochs = parse_number(text);
  if (epochs && *epochs > 0 && *epochs <= kMostEpochs) return *epochs;
  throw UsageError(
      fmt::format("--epochs: {} is no number above 0 and up to {:.0f}", in_quotes(text), kMostEpochs));
}

std::int64_t whole_number(std::string_view option, const std::string& text, std::int64_t most) {
  const std::string expected = fmt::format("expected a whole number, 1 to {}", most);
  const auto number = parse_whole_number(text);
  if (!number) {
    throw UsageError(fmt::format("{}: {} is not a whole number; {}", option, in_quotes(text), expected));
  }
  if (*number < 1 || *number > most) {
    throw UsageError(fmt::format("{}: {} is out of range; {}", option, in_quotes(text), expected));
  }
  return *number;
}

Format format_of(const OutputOptions& options, Format unless_said) {
  if (options.format.empty()) return unless_said;
  return static_cast<Format>(choice("--format", options.format, {"table", "json", "csv"}));
}

Sizes sizes_for(const ModelOptions& options, const ModelFile& model) {
  Sizes asked;
  if (!options.seq_len.empty()) {
    asked[std::string(kLengthSize)] = whole_number("--seq-len", options.seq_len, kLongestSequence);
  }
  if (!options.image_size.empty()) asked.merge(image_sizes(model, options.image_size));
  if (!options.rois.empty()) asked["rois"] = whole_number("--rois", options.rois, kMostRegions);
  if (options.model.empty() || options.model == "all") {
    std::erase_if(asked, [&](const auto& size) { return !has_size(model, size.first); });
  }
  return asked;
}

std::vector<Scenario> scenarios_for(const ScenarioOptions& options, SpecCache& specs) {
  require_gpu(options);
  const std::int64_t batch = batch_of(options);
  const SampleInput input = input_for(options.input);
  const TrainingChoices training = training_for(options.training);
  const bool named = !options.model.empty() && options.model != "all";
  const std::string asked = framework_asked_for(options, specs);
  std::vector<Scenario> scenarios;
  const std::vector<SuiteModel> models = models_for(options, specs);
  read_all(models, options.gpu, options.profile, specs);
  for (const SuiteModel& model : models) {
    const ModelFile& file = *specs.model(model.model);
    if (!shows(model, asked, specs)) continue;
    if (!named && model.framework.empty() && !trains(file, asked)) continue;
    const Sizes sizes = sizes_for(options, file);
    std::vector<std::string> frameworks;
    if (!asked.empty()) {
      frameworks = {asked};
    } else if (!model.framework.empty()) {
      frameworks = {model.framework};
    } else {
      frameworks = frameworks_for(model.variant, file, specs);
    }
    for (const std::string& framework : frameworks) {
      scenarios.push_back(
          {.model = model.model,
           .framework = framework,
           .gpu = options.gpu,
           .batch = batch,
           .tokens = options.tokens.empty() ? 0 : whole_number("--tokens", options.tokens, kMostSamples),
           .variant = model.variant,
           .precision = options.precision,
           .profile = options.profile,
           .dataset = options.dataset,
           .sizes = sizes,
           .input = input,
           .training = training});
    }
  }
  if (scenarios.empty()) {
    throw UsageError(
        fmt::format("{} trains none of the models; expected a --model with a --variant", options.framework));
  }
  return scenarios;
}

Scenario scenario_for(const ScenarioOptions& options, SpecCache& specs, std::string_view what) {
  if (options.model.empty() || options.model == "all")
    throw UsageError(fmt::format("{}; expected a model ('tbd-sim list models')", what));
  std::vector<Scenario> scenarios = scenarios_for(options, specs);
  if (scenarios.size() == 1) return std::move(scenarios.front());
  if (!options.gpu.empty()) (void)specs.gpu(options.gpu);  // an unknown one is the first thing to say
  std::vector<std::string> frameworks;
  for (const Scenario& scenario : scenarios) frameworks.push_back(scenario.framework);
  throw UsageError(fmt::format("{}, {} is trained by {}; expected a --framework", what, options.model,
                               joined(frameworks)));
}

}  // namespace tbdsim
