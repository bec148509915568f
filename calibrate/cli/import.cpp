#include "calibrate/cli/import.h"

#include <algorithm>
#include <ostream>

#include <fmt/format.h>

#include "calibrate/importers/importers.h"
#include "hwspecs/base/file.h"

namespace tbdsim {
namespace {
void list_sources(std::ostream& out) {
  out << fmt::format("{:<18}{:<64}{:<16}{}\n", "source", "reads", "licence", "from");
  for (const Importer& i : importers()) {
    out << fmt::format("{:<18}{:<64}{:<16}{}\n", i.source, i.reads, i.licence, i.from);
  }
  out << fmt::format("{:<18}{:<64}{:<16}{}\n", "records", "what tbd-measure and this command write", "", "");
}

// Removes the source from the words: the first, where it is no file. Empty where none is given.
std::string take_source(std::vector<std::string>& words) {
  std::error_code ignored;
  if (words.empty() || std::filesystem::exists(words.front(), ignored)) return "";
  const std::string first = words.front();
  if (first.find('/') != std::string::npos || first.ends_with(".csv")) return "";  // a file that is not there
  words.erase(words.begin());
  return first;
}
}  // namespace

void import_command(const ImportOptions& options, const ProgramContext& context) {
  if (options.list) {
    list_sources(context.out);
    return;
  }
  std::vector<std::string> files = options.words;
  const std::string source = take_source(files);
  require_source(source);
  if (files.empty()) throw UsageError("import: no file to read; expected one or more CSV files");
  if (options.output.empty()) throw UsageError("import: no --output; expected the file to write");
  if (context.catch_signals != nullptr) context.catch_signals();
  AtomicFile output(options.output);
  write_csv_row(output.stream(), record_columns());
  std::string report;
  for (const std::string& file : files) {
    const auto write = [&](const Record& record) {
      stop_if_interrupted(context);
      write_record(output.stream(), record);
    };
    const ImportSummary summary = source.empty() && is_profile(file)
                                      ? profile_records(file, options.profile, write)
                                      : import_table(file, source, write);
    report +=
        fmt::format("{}: {}, {} rows, {} records\n", file, summary.source, summary.rows, summary.records);
    for (const std::string& note : summary.notes) report += note + "\n";
  }
  output.commit();
  context.out << report;
}

}  // namespace tbdsim
