// Predictions against measured runs: errors by group, beside the noise of the measurements themselves.
#pragma once

#include <array>
#include <functional>
#include <iosfwd>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "simulate/validation/known_faults.h"
#include "simulate/validation/runs_table.h"

namespace tbdsim {

// One configuration: what was run, however often it was measured.
struct Configuration {
  std::string section;           // "score", "fit" or "context"
  std::string group;             // by what errors are grouped
  std::vector<std::string> run;  // what was run, as kRunIdentity names it
  std::vector<double> measured;  // every value, in the row's unit
  RowPrediction prediction;

  // Relative error of the prediction against the geometric mean of what was measured; positive: predicts too
  // much.
  [[nodiscard]] double error() const;
  [[nodiscard]] bool inside_interval() const;
};

// Errors are relative, |predicted / measured - 1|; each configuration counts once.
struct GroupErrors {
  std::string section;
  std::string group;
  int rows = 0;            // measured rows of the group
  int covered_rows = 0;    // those with a prediction
  int configurations = 0;  // distinct ones among the covered rows
  double mean = 0;
  double median = 0;
  double p90 = 0;
  double max = 0;
  double bias = 0;      // mean signed error
  double coverage = 0;  // share of configurations within their 80 % interval
  // Spread of repeats: the median over the group's configurations measured more than once, in whatever
  // section, of the standard deviation of ln(value); 0 when none was or nothing is judged.
  double noise = 0;
};

struct Validation {
  std::vector<GroupErrors> groups;            // by section (score, fit, context), then name
  std::map<std::string, int> not_covered;     // reason -> rows
  std::map<std::string, int> set_aside;       // why rows that ask to be judged are context -> rows
  std::vector<Configuration> configurations;  // in the order of sections, groups and what was run
};

// Columns that together identify a configuration; a table may lack some of them.
inline constexpr std::array<std::string_view, 17> kRunIdentity = {
    "gpu",           "framework",      "version",    "precision", "model",   "variant",
    "batch_per_gpu", "tokens_per_gpu", "gpus",       "machines",  "network", "method",
    "input",         "input_workers",  "input_time", "metric",    "unit"};

// A table of measured runs.
struct RunsTable {
  std::istream& in;
  std::string file;
};

// Returns the prediction for a row, like predict_row().
using RowPredictor =
    std::function<RowPrediction(const RunColumns& columns, std::span<const std::string> row)>;

// Reads tables of runs and predicts every row. `by` names the column to group by: group, set, gpu, model,
// framework. Rows with one of `faults` are context. `progress` is called after every row. Throws SpecError
// for a malformed table or missing columns.
[[nodiscard]] Validation validate_runs(std::span<const RunsTable> tables, const std::string& by,
                                       std::span<const KnownFault> faults, const RowPredictor& predictor,
                                       const std::function<void(std::size_t rows)>& progress);
// One table, with one profile or, where none is named, each GPU's own.
[[nodiscard]] Validation validate_runs(std::istream& in, const std::string& file, const std::string& by,
                                       const Resolver& resolve, const std::string& profile,
                                       const std::function<void(std::size_t rows)>& progress);

}  // namespace tbdsim
