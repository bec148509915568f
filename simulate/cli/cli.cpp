#include "simulate/cli/cli.h"

#include <algorithm>
#include <ostream>
#include <vector>

#include <fmt/format.h>

#include "hwspecs/base/error.h"
#include "hwspecs/base/suggest.h"
#include "simulate/cli/commands/command.h"
#include "simulate/cli/commands/help_examples.h"
#include "simulate/cli/commands/options.h"
#include "simulate/cli/progress_line.h"
#include "simulate/job/job_request.h"
#include "simulate/prediction/scenario_keys.h"

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
    "  tbd-sim memory resnet50 --framework mxnet --gpu p4000 --batch 32 --by layer\n"
    "  tbd-sim max-batch all --gpu p4000\n"
    "  tbd-sim scaling resnet50 --framework mxnet --gpu p4000 --machine tbd_p4000 --batch 32 --gpus 1,2,4 "
    "--machines 1,2\n"
    "  tbd-sim report --gpu titanxp -o report.html                                        the paper's "
    "figures\n"
    "  tbd-sim serve                                         a page with sliders on this machine\n"
    "  tbd-sim predict --scenarios runs.csv -o predicted.csv\n"
    "  tbd-sim validate                                      predictions beside measured runs: how far off\n"
    "  tbd-sim validate --runs runs.csv --by gpu\n"
    "  tbd-sim observations                                  which of the paper's twelve hold\n"
    "  tbd-sim whatif resnet50 --framework mxnet --gpu titanxp --batch 32 --set gpu.memory_bandwidth=+50%\n"
    "  tbd-sim sweep --model resnet50 --framework mxnet --gpu titanxp,p4000 --batch 1:64 -o sweep.csv\n";

// The root command and its subcommands.
struct CommandLine {
  CLI::App app{kDescription, "tbd-sim"};
  std::string data_dir;
  bool quiet = false;
  std::vector<Command> commands;  // the first is the root's own

  CommandLine() {
    app.footer(kExamples);
    app.set_version_flag("--version", "tbd-sim " TBDSIM_VERSION);
    app.add_option("--data-dir", data_dir,
                   "where the catalogue lies (default: TBDSIM_DATA_DIR, else as installed)");
    app.add_flag("-q,--quiet", quiet, "no progress and no remarks on long work");
    app.fallthrough();
    app.require_subcommand(0, 1);
    for (const auto add : {add_predict_scenario,
                           add_list,
                           add_show,
                           add_kernels,
                           add_memory,
                           add_max_batch,
                           add_trace,
                           add_scaling,
                           add_predict_table,
                           add_validate,
                           add_observations,
                           add_report,
                           add_serve,
                           add_sweep,
                           add_whatif,
                           add_plan,
                           add_tta,
                           add_import,
                           add_compare,
                           add_doctor,
                           add_completion})
      commands.push_back(add(app));
    for (const Command& command : commands) {
      if (command.app != &app) command.app->footer(examples_of(command.app->get_name()));
    }
  }

  // The command on the command line; the root's own without one.
  [[nodiscard]] const Command& command() const {
    for (const Command& command : commands) {
      if (command.app != &app && command.app->parsed()) return command;
    }
    return commands.front();
  }

  // "'tbd-sim plan'": the commands that have this option, "--tp"; empty where none has.
  [[nodiscard]] std::string commands_with(const std::string& option) const {
    std::string names;
    if (!option.starts_with("--")) return names;
    for (const Command& command : commands) {
      if (command.app == &app || command.app->get_option_no_throw(option) == nullptr) continue;
      names += (names.empty() ? "'tbd-sim " : ", 'tbd-sim ") + command.app->get_name() + "'";
    }
    return names;
  }

  // Names of options and commands, for "did you mean".
  [[nodiscard]] std::vector<std::string> known_words() const {
    std::vector<std::string> words;
    const auto add_options = [&](const CLI::App& from) {
      for (const CLI::Option* option : from.get_options()) {
        for (const std::string& name : option->get_lnames()) words.push_back("--" + name);
      }
    };
    add_options(app);
    for (const CLI::App* sub : app.get_subcommands()) add_options(*sub);
    for (const Command& command : commands) {
      if (command.app != &app) words.push_back(command.app->get_name());
    }
    return words;
  }
};

void dispatch(const CommandLine& line, const ProgramContext& context) {
  SpecCache specs(
      Catalog::from(line.data_dir.empty() ? context.data_dir : std::filesystem::path(line.data_dir)));
  ProgressLine progress(context, line.quiet);
  const Progress report{[&](std::size_t rows, std::size_t of) { progress(rows, of); },
                        [&](const std::string& remark) {
                          progress.end();
                          if (!line.quiet) context.err << remark << '\n';
                        }};
  const Command& command = line.command();
  if (command.long_work && context.catch_signals != nullptr) context.catch_signals();
  if (command.terminal != nullptr) *command.terminal = context.out_is_terminal;
  command.run(specs, context.out, report);
}

// "; expected --lora-rank": what stands for the option in the command; empty where nothing does.
std::string in_place_of(std::string option, const CLI::App& command) {
  std::replace(option.begin(), option.end(), '-', '_');
  std::string flags;
  for (const std::string_view key : job_keys_for(option.substr(2))) {
    const std::string flag = flag_of_key(key);
    if (command.get_option_no_throw(flag) != nullptr) flags += (flags.empty() ? "" : " or ") + flag;
  }
  if (command.get_name() == "sweep" && find_scenario_key(option.substr(2)) != nullptr)
    flags +=
        fmt::format("{}--set {}=VALUES", flags.empty() ? "" : " with --global-batch, or ", option.substr(2));
  return flags.empty() ? "" : "; expected " + flags;
}

// Throws for what CLI11 ignores silently: options without a value (an unset variable in a script, "--gpu
// --batch 64") and options of the root command that the given command does not have.
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
    if (option->count() == 0 || name == "--data-dir" || name == "--quiet") continue;
    const std::string command = in_quotes(apps[1]->get_name());
    if (apps[1]->get_option_no_throw(name) != nullptr)
      throw UsageError(name + " stands before " + command + "; expected behind it");
    throw UsageError(name + " means nothing to " + command + in_place_of(name, *apps[1]) +
                     " (see 'tbd-sim --help')");
  }
}

// Parses; false when help or the version was requested, and is printed.
bool parse(CommandLine& line, std::span<const std::string> arguments, const ProgramContext& context) {
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
    const std::string option = first.substr(0, first.find('='));
    if (const std::string others = line.commands_with(option); !others.empty())
      throw UsageError("unknown argument " + in_quotes(option) + ": an option of " + others +
                       " (see 'tbd-sim --help')");
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

int run_cli(std::span<const std::string> arguments, const ProgramContext& context) {
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
