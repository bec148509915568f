#include <fstream>
#include <memory>

#include <fmt/format.h>

#include "hwspecs/base/csv.h"
#include "hwspecs/base/error.h"
#include "simulate/cli/commands/command.h"
#include "simulate/cli/commands/options.h"
#include "simulate/validation/runs_table.h"

namespace tbdsim {
namespace {

struct ScenariosOptions {
  std::string scenarios;  // the table to predict
  std::string profile;
  OutputOptions output;
};

std::string number_text(double value) { return fmt::format("{:.6g}", value); }

// Copies the table with predicted, predicted_low, predicted_high and status appended; predictions are in the
// row's own unit.
void run(const ScenariosOptions& options, SpecCache& specs, std::ostream& out, const Progress& progress) {
  const Format format = format_of(options.output, Format::csv);
  std::ifstream in = open_input(options.scenarios);
  CsvReader reader(in, options.scenarios);
  const RunColumns columns(reader);
  std::vector<std::string> names = reader.columns();
  for (const char* added : {"predicted", "predicted_low", "predicted_high", "status"}) {
    if (reader.find_column(added)) {
      throw SpecError(reader.row_mark(),
                      fmt::format("column '{}' is there already; expected a table without it", added));
    }
    names.emplace_back(added);
  }
  if (!options.profile.empty())
    (void)specs.profile(options.profile);  // a wrong profile is no matter of a row
  Table table;
  table.name = "rows";
  for (const std::string& name : names) table.columns.push_back({name, name});
  write_output(options.output, out, [&](std::ostream& to) {
    if (format == Format::csv) write_csv_row(to, names);
    std::size_t rows = 0;
    std::vector<std::string> row;
    while (reader.next(row)) {
      const RowPrediction p = predict_row(columns, row, specs, options.profile);
      for (const double number : {p.predicted, p.interval.low, p.interval.high}) {
        row.push_back(p.ok() ? number_text(number) : "");
      }
      row.push_back(p.status);
      progress(++rows);
      if (format == Format::csv) {  // row by row, however long the table is
        write_csv_row(to, row);
      } else {
        std::vector<Cell>& cells = table.rows.emplace_back();
        for (const std::string& field : row) cells.push_back(text_cell(field));
      }
    }
    if (format != Format::csv) write_tables(to, std::span(&table, 1), format);
  });
}

}  // namespace

Command add_predict_table(CLI::App& root) {
  const auto options = std::make_shared<ScenariosOptions>();
  CLI::App* app = root.add_subcommand("predict", "predict every row of a table of training runs");
  app->add_option("--scenarios", options->scenarios, "CSV of runs, as docs/formats.md describes")->required();
  add_profile_option(*app, options->profile);
  add_output_options(*app, options->output, "csv");
  return {app,
          [options](SpecCache& specs, std::ostream& out, const Progress& progress) {
            run(*options, specs, out, progress);
          },
          true};
}

}  // namespace tbdsim
