#include "simulate/cli.h"

#include <algorithm>
#include <chrono>
#include <ostream>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "hwspecs/base/error.h"
#include "hwspecs/base/suggest.h"
#include "simulate/catalog_report.h"
#include "simulate/commands.h"
#include "simulate/kernel_groups.h"

namespace tbdsim {
namespace {

constexpr const char* kDescription =
    "Predicts the training of neural networks on GPUs: throughput, utilization and memory, before anyone "
    "buys or\n"
    "rents the hardware. Names come from the catalogue ('tbd-sim list ...'); a path to your own YAML file "
    "works\n"
    "wherever a name does.";

constexpr const char* kExamples =
    "Examples:\n"
    "  tbd-sim --gpu titanxp --batch 64                      every model, a line each\n"
    "  tbd-sim --gpu p4000 --batch 32 --model resnet50 --framework mxnet --format json\n"
    "  tbd-sim list gpus                                     what there is\n"
    "  tbd-sim show resnet50 --variant v1.5                  layers, parameters, multiply-adds\n"
    "  tbd-sim show dgx1_v100                                a machine, with its sources\n"
    "  tbd-sim kernels resnet50 --framework tensorflow --gpu titanxp --batch 64\n"
    "  tbd-sim kernels resnet50 --gpu titanxp --batch 64 --from modelled,roofline   what no measurement is "
    "near\n"
    "  tbd-sim kernels all --batch 4,16,64 --unique --plan -o plan.csv\n"
    "  tbd-sim kernels resnet50 --framework mxnet --gpu p4000 --batch 32 --below-average     Table VI of the "
    "paper\n"
    "  tbd-sim trace resnet50 --framework mxnet --gpu titanxp --batch 64 -o trace.json       for Perfetto\n"
    "  tbd-sim predict --scenarios runs.csv -o predicted.csv\n"
    "  tbd-sim validate --runs runs.csv --by gpu\n";

class Interrupted : public std::exception {};

void add_output_file(CLI::App& app, Options& options) {
  app.add_option("-o,--output", options.output, "write to this file instead of standard output");
}

void add_output_options(CLI::App& app, Options& options, const std::string& format = "table") {
  app.add_option("--format", options.format, "table, json or csv (default " + format + ")");
  add_output_file(app, options);
}

void add_model_options(CLI::App& app, Options& options) {
  app.add_option("--framework", options.framework, "a framework (default: those that train the model)");
  app.add_option("--variant", options.variant, "a variant of the model (default: the framework's)");
  app.add_option("--precision", options.precision, "fp32, tf32, fp16, bf16 or amp (default fp32)");
  app.add_option("--seq-len", options.seq_len,
                 "steps of every sequence (default: the lengths of the data set)");
  app.add_option("--image-size", options.image_size,
                 "pixels of every image, 299 or 600x800 (height x width)");
  app.add_option("--rois", options.rois, "regions of interest in every image");
}

void add_scenario_options(CLI::App& app, Options& options) {
  add_model_options(app, options);
  app.add_option("--gpu", options.gpu, "a GPU of 'tbd-sim list gpus', or a YAML file");
  app.add_option("--batch", options.batch, "samples in one iteration on one GPU");
  app.add_option("--tokens", options.tokens,
                 "instead of --batch: steps of all sequences of an iteration, each as long as the longest");
  app.add_option("--dataset", options.dataset, "a data set, or a YAML file (default: the variant's)");
  app.add_option("--profile", options.profile,
                 "source of kernel times (default: the GPU's, its architecture's, or the generic one)");
}

// The root command and its subcommands, filled into one Options.
struct CommandLine {
  CLI::App app{kDescription, "tbd-sim"};
  Options options;
  std::string data_dir;
  CLI::App* list = nullptr;
  CLI::App* show = nullptr;
  CLI::App* kernels = nullptr;
  CLI::App* trace = nullptr;
  CLI::App* scenarios = nullptr;
  CLI::App* validate = nullptr;

  CommandLine() {
    app.footer(kExamples);
    app.set_version_flag("--version", "tbd-sim " TBDSIM_VERSION);
    app.add_option("--data-dir", data_dir,
                   "where the catalogue lies (default: TBDSIM_DATA_DIR, else as installed)");
    app.fallthrough();
    app.require_subcommand(0, 1);
    app.add_option("--model", options.model,
                   "a model of 'tbd-sim list models', or a YAML file (default: the eight of the TBD suite; "
                   "all: the whole catalogue)");
    add_scenario_options(app, options);
    add_output_options(app, options);

    std::vector<std::string> kinds;
    for (const Listing& listing : listings()) kinds.emplace_back(listing.name);
    list = app.add_subcommand("list", "what the catalogue holds: " + joined(kinds));
    list->add_option("what", options.list_of, joined(kinds));
    add_output_options(*list, options);

    show = app.add_subcommand("show",
                              "a model's layers, or what a GPU, machine, data set, ... is, with its sources");
    show->add_option("what", options.model, "a name of the catalogue, or a model's YAML file")->required();
    add_model_options(*show, options);
    add_output_options(*show, options);

    kernels = app.add_subcommand("kernels",
                                 "every kernel of an iteration: cost, bound, where the number comes from");
    kernels->add_option("model", options.model, "a model, a YAML file, or all (default)");
    add_scenario_options(*kernels, options);
    add_output_options(*kernels, options);
    kernels->get_option("--batch")->description("samples in one iteration on one GPU; several as 4,16,64");
    kernels->get_option("--precision")->description("as above; several as fp32,tf32");
    const std::vector<std::string> provenances(kProvenanceNames.begin(), kProvenanceNames.end());
    kernels->add_option(
        "--from", options.from,
        "only kernels whose time comes from there, as modelled,roofline: " + joined(provenances));
    const std::vector<std::string> views(kKernelViewNames.begin(), kKernelViewNames.end());
    kernels->add_option("--by", options.view, "summed by " + joined(views));
    kernels
        ->add_option(
            "--below-average", options.below_average,
            "the longest kernels whose FP32 utilization is below the iteration's, so many (default 5)")
        ->expected(0, 1)
        ->default_str("5");
    kernels->add_flag("--unique", options.unique, "each distinct kernel once, the most time first");
    kernels->add_flag("--plan", options.plan,
                      "the distinct kernels as CSV for 'tbd-measure --plan'; --gpu may be left out");

    trace = app.add_subcommand("trace", "one iteration as a trace for Perfetto or chrome://tracing");
    trace->add_option("model", options.model, "a model, or a YAML file");
    add_scenario_options(*trace, options);
    add_output_file(*trace, options);

    scenarios = app.add_subcommand("predict", "predict every row of a table of training runs");
    scenarios->add_option("--scenarios", options.scenarios, "CSV in the schema of the README")->required();
    scenarios->add_option(
        "--profile", options.profile,
        "source of kernel times (default: the GPU's, its architecture's, or the generic one)");
    add_output_options(*scenarios, options, "csv");

    validate = app.add_subcommand("validate", "predictions against measured runs: errors by group");
    validate->add_option("--runs", options.runs, "CSV of measured runs in the schema of the README")
        ->required();
    validate->add_option("--by", options.by, "group, set, gpu, model or framework (default group)");
    validate->add_option(
        "--profile", options.profile,
        "source of kernel times (default: the GPU's, its architecture's, or the generic one)");
    add_output_options(*validate, options);
  }

  // Names a stray argument may have been meant to be.
  [[nodiscard]] std::vector<std::string> known_words() const {
    std::vector<std::string> words;
    const auto add_options = [&](const CLI::App& from) {
      for (const CLI::Option* option : from.get_options()) {
        for (const std::string& name : option->get_lnames()) words.push_back("--" + name);
      }
    };
    add_options(app);
    for (const CLI::App* sub : app.get_subcommands()) add_options(*sub);
    for (const CLI::App* sub : {list, show, kernels, trace, scenarios, validate})
      words.push_back(sub->get_name());
    return words;
  }
};

// Rows done, at most four times a second, on a terminal; stops at an interrupt.
class ProgressLine {
 public:
  explicit ProgressLine(const CliContext& context) : context_(context) {}
  ~ProgressLine() {
    if (shown_) context_.err << '\n';
  }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void operator()(std::size_t rows) {
    if (context_.interrupted != nullptr && context_.interrupted->load()) throw Interrupted();
    if (!context_.show_progress) return;
    const auto now = std::chrono::steady_clock::now();
    if (now - last_ < std::chrono::milliseconds(250)) return;
    last_ = now;
    shown_ = true;
    context_.err << '\r' << rows << " rows" << std::flush;
  }

 private:
  const CliContext& context_;
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
  bool shown_ = false;
};

void dispatch(const CommandLine& line, const CliContext& context) {
  Library library(
      Catalog::from(line.data_dir.empty() ? context.data_dir : std::filesystem::path(line.data_dir)));
  ProgressLine progress(context);
  const Progress report = [&](std::size_t rows) { progress(rows); };
  const bool long_work = line.scenarios->parsed() || line.validate->parsed();
  if (long_work && context.catch_signals != nullptr) context.catch_signals();
  const Options& options = line.options;
  if (line.list->parsed()) {
    list_command(options, library, context.out);
  } else if (line.show->parsed()) {
    show_command(options, library, context.out);
  } else if (line.kernels->parsed()) {
    kernels_command(options, library, context.out);
  } else if (line.trace->parsed()) {
    trace_command(options, library, context.out);
  } else if (line.scenarios->parsed()) {
    scenarios_command(options, library, context.out, report);
  } else if (line.validate->parsed()) {
    validate_command(options, library, context.out, report);
  } else {
    predict_command(options, library, context.out);
  }
}

// Refuses what CLI11 lets pass and would be silently ignored: options without a value (an unset variable in a
// script,
// "--gpu --batch 64") and options of the root command that the command given does not know.
void require_meaning(const CommandLine& line) {
  const std::vector<std::string> words = line.known_words();
  std::vector<const CLI::App*> apps{&line.app};
  for (const CLI::App* command : line.app.get_subcommands()) apps.push_back(command);
  for (const CLI::App* app : apps) {
    for (const CLI::Option* option : app->get_options()) {
      for (const std::string& value : option->results()) {
        const bool option_word =
            value.starts_with("--") && std::find(words.begin(), words.end(), value) != words.end();
        if (value.empty() || option_word)
          throw UsageError(option->get_name() + ": has no value; expected one behind it");
      }
    }
  }
  if (apps.size() == 1) return;
  for (const CLI::Option* option : line.app.get_options()) {
    const std::string name = option->get_name();
    if (option->count() == 0 || name == "--data-dir") continue;
    const bool known = apps[1]->get_option_no_throw(name) != nullptr ||
                       apps[1]->get_option_no_throw(name.substr(name.find_first_not_of('-'))) != nullptr;
    if (!known)
      throw UsageError(name + " means nothing to '" + apps[1]->get_name() + "' (see 'tbd-sim --help')");
  }
}

// Parses; returns false when help or the version was asked for and printed.
bool parse(CommandLine& line, std::span<const std::string> arguments, const CliContext& context) {
  std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());  // as CLI11 wants them
  try {
    line.app.parse(reversed);
    require_meaning(line);
    return true;
  } catch (const CLI::Success& asked) {
    line.app.exit(asked, context.out, context.err);
    return false;
  } catch (const CLI::ExtrasError&) {
    require_meaning(line);
    const std::vector<std::string> extra = line.app.remaining(true);
    const std::string& first = extra.empty() ? arguments.back() : extra.front();
    const std::vector<std::string> words = line.known_words();
    if (std::find(words.begin(), words.end(), first) != words.end()) {
      throw UsageError("a second command " + in_quotes(first) + "; expected one (see 'tbd-sim --help')");
    }
    throw UsageError("unknown argument " + in_quotes(first) + did_you_mean(first, words) +
                     " (see 'tbd-sim --help')");
  } catch (const CLI::ArgumentMismatch& wrong) {
    const std::string text = wrong.what();
    const std::string option = text.substr(0, text.find(':'));
    const bool twice = text.find("At Most") != std::string::npos;
    throw UsageError(
        option + (twice ? ": is given twice; expected it once" : ": has no value; expected one behind it"));
  } catch (const CLI::ParseError& wrong) {
    throw UsageError(std::string(wrong.what()) + " (see 'tbd-sim --help')");
  }
}

}  // namespace

int run_cli(std::span<const std::string> arguments, const CliContext& context) {
  try {
    CommandLine line;
    if (arguments.empty()) {
      context.out << line.app.help();
      return kExitOk;
    }
    if (parse(line, arguments, context)) dispatch(line, context);
    context.out.flush();
    if (!context.out) throw UsageError("standard output cannot be written");
    return kExitOk;
  } catch (const Interrupted&) {
    context.err << "tbd-sim: interrupted\n";
    return kExitInterrupted;
  } catch (const Error& wrong) {
    context.err << "tbd-sim: " << wrong.what() << '\n';
    return kExitUsage;
  }
}

}  // namespace tbdsim
