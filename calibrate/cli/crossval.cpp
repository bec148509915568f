#include "calibrate/cli/crossval.h"

#include <algorithm>
#include <optional>
#include <ostream>

#include <fmt/format.h>

#include "calibrate/cli/crossval_table.h"
#include "calibrate/fit/cross_validation.h"
#include "calibrate/samples/load_records.h"
#include "costmodel/families/families.h"
#include "hwspecs/base/error.h"
#include "hwspecs/base/file.h"
#include "hwspecs/base/suggest.h"

namespace tbdsim {
namespace {

// Most samples for each family, GPU and block.
constexpr std::size_t kMostSamples = 3000;
constexpr std::size_t kQuickSamples = 200;

void require_one_of(std::string_view option, const std::string& value,
                    std::span<const std::string_view> known) {
  if (value.empty() || std::find(known.begin(), known.end(), value) != known.end()) return;
  const std::vector<std::string> names(known.begin(), known.end());
  throw UsageError(fmt::format("{}: {} is unknown; expected one of {}{}", option, in_quotes(value),
                               joined(names), did_you_mean(value, names)));
}

template <class Family>
void run_family(const CrossvalCommand& command, const LoadedRecords& loaded, const CrossvalOptions& options,
                std::vector<Outcome>& outcomes) {
  if (!command.family.empty() && command.family != Family::name) return;
  const auto samples = stratified<Family>(samples_of<Family>(loaded.records, loaded.gpus),
                                          command.quick ? kQuickSamples : kMostSamples);
  if (samples.empty()) return;
  for (std::size_t i = 0; i < kProtocolNames.size(); ++i) {
    if (!command.protocol.empty() && command.protocol != kProtocolNames[i]) continue;
    const std::vector<Outcome> found = cross_validate<Family>(samples, static_cast<Protocol>(i), options);
    outcomes.insert(outcomes.end(), found.begin(), found.end());
  }
}

}  // namespace

void crossval_command(const CrossvalCommand& command, const ProgramContext& context) {
  require_one_of("--family", command.family, kFamilyNames);
  require_one_of("--left-out", command.protocol, kProtocolNames);
  constexpr std::string_view kFormats[] = {"table", "json", "csv"};
  require_one_of("--format", command.format.empty() ? "nothing" : command.format, kFormats);
  std::optional<AtomicFile>
      file;  // opened before the fits, which take minutes, so that a bad path fails at once
  if (!command.output.empty()) file.emplace(command.output);
  const LoadedRecords loaded = load_records(command.files, Catalog::from(context.data_dir));
  if (context.catch_signals != nullptr) context.catch_signals();
  CrossvalOptions options;
  options.clocks = clock_priors(loaded.records, loaded.gpus);
  options.progress = [&](std::string_view step) {
    stop_if_interrupted(context);
    if (context.show_progress) context.err << "\r\033[K" << step << std::flush;
  };
  std::vector<Outcome> outcomes;
#define TBDSIM_RUN(Family) run_family<Family>(command, loaded, options, outcomes);
  TBDSIM_FOR_EACH_FAMILY(TBDSIM_RUN)
#undef TBDSIM_RUN
  if (context.show_progress) context.err << "\r\033[K";
  if (outcomes.empty())
    throw UsageError("no record is of a kernel that is fitted, or there is nothing to leave out");
  Table table = cross_validation_table(outcomes, command.details);
  table.notes = loaded.notes;
  const auto format =
      static_cast<Format>(std::find(std::begin(kFormats), std::end(kFormats), command.format) - kFormats);
  write_tables(file ? file->stream() : context.out, std::span(&table, 1), format);
  if (file) file->commit();
}

}  // namespace tbdsim
