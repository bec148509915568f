#include "calibrate/cli/fit_framework.h"

#include <optional>
#include <ostream>

#include <fmt/format.h>

#include "calibrate/framework_fit/write_fit.h"
#include "hwspecs/base/error.h"
#include "hwspecs/base/file.h"
#include "hwspecs/base/suggest.h"
#include "simulate/workload/spec_cache.h"

namespace tbdsim {
namespace {

constexpr std::uintmax_t kLargestFile = std::uintmax_t{1} << 20U;  // as files of the catalogue may be

void require_named(const FrameworkFitCommand& command) {
  if (command.runs.empty()) throw UsageError("fit-framework: expected a table of runs");
  if (command.framework.empty()) throw UsageError("fit-framework: expected --framework NAME");
}

void require_fit_rows(const RunRows& rows, const FrameworkFitCommand& command) {
  if (!rows.fit.empty()) return;
  std::string others =
      rows.score.empty() ? "" : fmt::format("; its {} score rows are not for fits", rows.score.size());
  if (!rows.not_covered.empty()) {
    const auto& [reason, count] = *rows.not_covered.begin();
    others += fmt::format("; {} not covered: {}", count, reason);
  }
  throw UsageError(
      fmt::format("{}: no row to fit {} to; expected rows of {} with use time and split fit whose "
                  "version means it{}",
                  command.runs, command.framework,
                  rows.most_gpus == 1 ? "one GPU" : fmt::format("up to {} GPUs", rows.most_gpus), others));
}

}  // namespace

void framework_fit_command(const FrameworkFitCommand& command, const ProgramContext& context) {
  require_named(command);
  const std::vector<FitConstant> constants = parse_fit_constants(command.constants);
  SpecCache specs(Catalog::from(context.data_dir));
  const Framework& framework = *specs.framework(command.framework);
  const std::filesystem::path source = specs.catalog().find(Kind::framework, command.framework);
  const std::string yaml = read_file(source, kLargestFile);
  std::ifstream in = open_input(command.runs);
  std::optional<AtomicFile> file;  // opened before the fit, so that a bad path fails at once
  if (!command.output.empty()) file.emplace(command.output);
  if (context.catch_signals != nullptr) context.catch_signals();
  std::size_t steps = 0;
  const auto progress = [&] {
    stop_if_interrupted(context);
    if (context.show_progress)
      context.err << "\r\033[K" << framework.name << ": step " << ++steps << std::flush;
  };
  const RunRows rows =
      read_run_rows(in, command.runs, command.framework, framework, command.gpus, specs, progress);
  require_fit_rows(rows, command);
  const FrameworkFit fit = fit_framework(framework, constants, pointers_to(rows.fit), progress);
  const FitErrors errors = errors_of(framework, fit, rows, progress);
  if (context.show_progress) context.err << "\r\033[K";
  if (file) {
    file->stream() << with_fitted_constants(yaml, source.string(), rows, fit, errors);
    file->commit();
  }
  write_fit_report(context.out, framework, rows, fit, errors, command.details);
}

}  // namespace tbdsim
