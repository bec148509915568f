#include "calibrate/cli/cli.h"

#include <ostream>
#include <vector>

#include <CLI/CLI.hpp>

#include "calibrate/cli/crossval.h"
#include "calibrate/cli/errors.h"
#include "calibrate/cli/fit.h"
#include "calibrate/cli/fit_communication.h"
#include "calibrate/cli/fit_convergence.h"
#include "calibrate/cli/fit_framework.h"
#include "calibrate/cli/fit_intervals.h"
#include "calibrate/cli/import.h"
#include "hwspecs/base/error.h"
#include "hwspecs/base/suggest.h"

namespace tbdsim {
namespace {

constexpr const char* kExamples =
    "Examples:\n"
    "  tbd-calibrate import --list                               tables that can be read\n"
    "  tbd-calibrate import deepbench_gemm.csv -o records.csv    the header says which table it is\n"
    "  tbd-calibrate import neusight *.csv -o records.csv\n"
    "  tbd-calibrate fit my_gpu.csv -o my_gpu.yaml               what tbd-measure wrote -> a profile for "
    "tbd-sim\n"
    "  tbd-calibrate crossval deepbench_*.csv --details          errors on calls that were left out\n"
    "  tbd-calibrate errors my_gpu.csv --profile my_gpu.yaml     measured calls beside a profile's "
    "prediction\n"
    "  tbd-calibrate fit-framework runs.csv --framework mxnet --constants kernel,wait -o mxnet.yaml\n"
    "  tbd-calibrate fit-communication nccl.csv --machine dgx1_v100 --only gpu=v100\n"
    "  tbd-calibrate fit-convergence resnet50_759                the law of epochs over the batch\n"
    "  tbd-calibrate fit-intervals --development runs.csv more.csv   components of the 80 % intervals\n";

// A subcommand and the function that runs it.
struct Command {
  CLI::App* app = nullptr;
  std::function<void(const ProgramContext&)> run;
};

struct CommandLine {
  CLI::App app{"Turns measured kernels into what tbd-sim predicts with.", "tbd-calibrate"};
  ImportOptions import;
  FitCommand fit;
  CrossvalCommand crossval;
  ErrorsCommand errors;
  FrameworkFitCommand framework;
  CommunicationCommand communication;
  ConvergenceCommand convergence;
  IntervalFitCommand intervals;
  std::string data_dir;
  std::vector<Command> commands;

  CommandLine() {
    app.footer(kExamples);
    app.set_version_flag("--version", "tbd-calibrate " TBDSIM_VERSION);
    app.add_option("--data-dir", data_dir,
                   "where the catalogue lies (default: TBDSIM_DATA_DIR, else as installed)");
    app.fallthrough();
    app.require_subcommand(1);
    add_import();
    add_fit();
    add_crossval();
    add_errors();
    add_fit_framework();
    add_fit_communication();
    add_fit_convergence();
    add_fit_intervals();
  }

  void add_import() {
    CLI::App* command = app.add_subcommand(
        "import", "published tables of measured kernels, or a profile with shapes, into records");
    command->add_option("files", import.words,
                        "[SOURCE] CSV files; without SOURCE their headers say what they are");
    command->add_option("-o,--output", import.output, "the records; appears whole or not at all");
    command->add_option("--gpu", import.profile.gpu, "of a profile that names none");
    command
        ->add_option("--cuda", import.profile.cuda,
                     "major version of CUDA, of a profile that does not say it")
        ->check(CLI::Range(1, 99));
    command
        ->add_option(
            "--cudnn", import.profile.cudnn,
            "major version of cuDNN, which profiles do not say: without it convolutions are left out")
        ->check(CLI::Range(1, 99));
    command->add_flag("--list", import.list, "the sources that can be read");
    commands.push_back({command, [this](const ProgramContext& context) { import_command(import, context); }});
  }

  void add_fit() {
    CLI::App* command =
        app.add_subcommand("fit", "records of measured kernels into a profile that tbd-sim predicts with");
    command->add_option("files", fit.files, "records and published tables");
    command->add_option("-o,--output", fit.output, "the profile; appears whole or not at all");
    command->add_option(
        "--all", fit.all,
        "instead: a folder for the profiles of every GPU measured, each architecture, all together, and\n"
        "holdout/GPU: as if nothing had been measured on it");
    command->add_option("--gpu", fit.gpu, "for this GPU (default: that of the records, when there is one)");
    command->add_option("--architecture", fit.architecture, "for any GPU of this architecture");
    command->add_flag("--generic", fit.generic, "for any GPU");
    command->add_flag("--without", fit.without, "as if nothing had been measured on --gpu");
    command->add_flag("--one-gemm", fit.one_gemm,
                      "as --without, but for one large matrix product, which tells its clock");
    command
        ->add_option("--families", fit.families,
                     "only these families of kernels, with commas between; blocks of others stay as the\n"
                     "files have them")
        ->delimiter(',');
    commands.push_back({command, [this](const ProgramContext& context) { fit_command(fit, context); }});
  }

  void add_crossval() {
    CLI::App* command =
        app.add_subcommand("crossval", "errors of the fitted formulas on calls that were left out");
    command->add_option("files", crossval.files, "records and published tables");
    command->add_option("--family", crossval.family, "one family of kernels (default: all)");
    command->add_option("--left-out", crossval.protocol,
                        "shapes, gpu, gpu_one_gemm or largest_batch (default: each)");
    command->add_flag("--details", crossval.details, "also for each GPU and each phase");
    command->add_flag("--quick", crossval.quick, "a subset of the calls");
    command->add_option("--format", crossval.format, "table, json or csv (default table)");
    command->add_option("-o,--output", crossval.output, "write to this file instead of standard output");
    commands.push_back(
        {command, [this](const ProgramContext& context) { crossval_command(crossval, context); }});
  }

  void add_errors() {
    CLI::App* command = app.add_subcommand(
        "errors", "measured calls beside what a profile predicts for them, by sort of call");
    command->add_option("files", errors.files, "records and published tables");
    command->add_option("--profile", errors.profile, "a profile of the catalogue, or a path")->required();
    command->add_flag("--each", errors.each, "each call instead");
    command->add_option("--format", errors.format, "table, json or csv")->capture_default_str();
    command->add_option("-o,--output", errors.output, "write to this file instead of standard output");
    commands.push_back({command, [this](const ProgramContext& context) { errors_command(errors, context); }});
  }

  void add_fit_communication() {
    CLI::App* command = app.add_subcommand(
        "fit-communication",
        "measured all-reduces into what collective operations cost over a machine's links");
    command->add_option("files", communication.files,
                        "tables with columns gpus, bytes and time_ms, or alike");
    command->add_option("--machine", communication.machine, "a machine of the catalogue, or a path");
    command->add_option("--only", communication.only, "rows with this value in a column, as gpu=v100");
    commands.push_back(
        {command, [this](const ProgramContext& context) { communication_command(communication, context); }});
  }

  void add_fit_convergence() {
    CLI::App* command = app.add_subcommand(
        "fit-convergence", "measured epochs to a target over the batch into the law of the target's file");
    command->add_option(
        "files", convergence.files,
        "targets of 'tbd-sim list targets', or files as in graphs/convergence (default: all)");
    commands.push_back(
        {command, [this](const ProgramContext& context) { convergence_command(convergence, context); }});
  }

  void add_fit_intervals() {
    CLI::App* command = app.add_subcommand(
        "fit-intervals", "errors of predicted training runs into what their intervals are made of");
    command->add_option("files", intervals.files, "tables of runs; rows of split fit set the components");
    command->add_option("--development", intervals.development,
                        "tables of runs that were in view while the model was made: rows of either split");
    command->add_option("--errors", intervals.errors, "tables of errors, as --rows writes them");
    command->add_option(
        "--rows", intervals.rows,
        "the errors that set the components, and amounts of effects; appears whole or not at all");
    commands.push_back(
        {command, [this](const ProgramContext& context) { interval_fit_command(intervals, context); }});
  }

  void add_fit_framework() {
    CLI::App* command = app.add_subcommand(
        "fit-framework", "measured training runs into what a framework's CPU side and kernels cost");
    command->add_option("runs", framework.runs, "a table of runs; its rows of split fit are used");
    command->add_option("--framework", framework.framework, "a framework of the catalogue, or a path");
    command->add_option(
        "--constants", framework.constants,
        "at most four of kernel, step, update, wait, iteration, gap and factors.KIND, with commas\n"
        "between; factors.KIND+KIND is one factor of several kinds of kernels, factors.half_convolution\n"
        "one of convolutions in half precision on tensor cores, factors.on.sm_80 one of all kernels\n"
        "on GPUs of compute capability 8.0");
    command->add_option("-o,--output", framework.output,
                        "the framework's file with the fitted constants; appears whole or not at all");
    command
        ->add_option("--gpus", framework.gpus,
                     "rows of up to so many GPUs in one machine, whose exchange counts as\npredicted")
        ->capture_default_str()
        ->check(CLI::Range(1, 1'000));
    command->add_flag("--details", framework.details, "also the error of each row of split fit");
    commands.push_back(
        {command, [this](const ProgramContext& context) { framework_fit_command(framework, context); }});
  }
};

std::string unknown_argument(const CommandLine& line, std::span<const std::string> arguments) {
  std::vector<std::string> known;
  for (const Command& command : line.commands) known.push_back(command.app->get_name());
  const std::vector<std::string> extra = line.app.remaining(true);
  const std::string& first = extra.empty() ? arguments.front() : extra.front();
  return "unknown argument " + in_quotes(first) + did_you_mean(first, known) +
         " (see 'tbd-calibrate --help')";
}

// Returns false when help or the version was requested and printed.
bool parse(CommandLine& line, std::span<const std::string> arguments, const ProgramContext& context) {
  std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());  // the order that CLI11 expects
  try {
    line.app.parse(reversed);
    return true;
  } catch (const CLI::Success& asked) {
    line.app.exit(asked, context.out, context.err);
    return false;
  } catch (const CLI::ExtrasError&) {
    throw UsageError(unknown_argument(line, arguments));
  } catch (const CLI::RequiredError&) {  // no command: the first argument was meant to be one
    throw UsageError(unknown_argument(line, arguments));
  } catch (const CLI::ParseError& wrong) {
    throw UsageError(std::string(wrong.what()) + " (see 'tbd-calibrate --help')");
  }
}
}  // namespace

int run_calibrate(std::span<const std::string> arguments, const ProgramContext& given) {
  try {
    CommandLine line;
    if (arguments.empty()) {
      given.out << line.app.help();
      return kExitOk;
    }
    if (!parse(line, arguments, given)) return kExitOk;
    ProgramContext context = given;
    if (!line.data_dir.empty()) context.data_dir = line.data_dir;
    for (const Command& command : line.commands) {
      if (command.app->parsed()) command.run(context);
    }
    context.out.flush();
    if (!context.out) throw UsageError("standard output cannot be written");
    return kExitOk;
  } catch (const Interrupted&) {
    given.err << "tbd-calibrate: interrupted\n";
    return kExitInterrupted;
  } catch (const Error& wrong) {
    given.err << "tbd-calibrate: " << wrong.what() << '\n';
    return kExitUsage;
  }
}

}  // namespace tbdsim
