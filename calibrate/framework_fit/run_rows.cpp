#include "calibrate/framework_fit/run_rows.h"

#include <fmt/format.h>

#include "hwspecs/base/error.h"
#include "hwspecs/base/number.h"
#include "simulate/prediction/predict.h"
#include "simulate/prediction/repredict.h"
#include "simulate/validation/runs_table.h"

namespace tbdsim {
namespace {

// Columns that decide whether a row is fitted.
struct SplitColumns {
  explicit SplitColumns(const CsvReader& reader)
      : value(reader.column("value")),
        use(reader.column("use")),
        split(reader.column("split")),
        set(reader.find_column("set")) {}

  std::size_t value, use, split;
  std::optional<std::size_t> set;
};

bool is_time(const std::string& metric) { return metric == "throughput" || metric == "iteration_time"; }

RunRow run_row(const RunColumns& columns, const std::vector<std::string>& row, const std::string& value,
               const Scenario& scenario, const Resolver& resolve) {
  const auto measured = parse_number(value);
  if (!measured || *measured <= 0) throw UsageError("value is not a positive number");
  RunRow run;
  run.prediction = predict(scenario, resolve);
  const double predicted = predicted_value(columns, row, run.prediction, resolve).predicted;
  run.rate = row[columns.metric] == "throughput";
  run.measured = run.prediction.iteration_time() * (run.rate ? predicted / *measured : *measured / predicted);
  return run;
}

}  // namespace

double RunRow::error(const Framework& framework) const {
  const Seconds predicted = iteration_time_with(framework, prediction);
  return (rate ? measured / predicted : predicted / measured) - 1;
}

std::string runs_text(const RunRows& rows) {
  return rows.most_gpus == 1 ? "single-GPU runs" : fmt::format("runs of up to {} GPUs", rows.most_gpus);
}

RunRows read_run_rows(std::istream& in, const std::string& file, const std::string& name,
                      const Framework& framework, int most_gpus, const Resolver& resolve,
                      const std::function<void()>& progress) {
  CsvReader reader(in, file);
  const RunColumns columns(reader);
  const SplitColumns split(reader);
  RunRows rows{.most_gpus = most_gpus, .fit = {}, .score = {}, .not_covered = {}};
  for (std::vector<std::string> row; reader.next(row);) {
    const auto gpus = parse_whole_number(row[columns.gpus]);
    const bool few = gpus && *gpus <= most_gpus && row[columns.machines] == "1";
    const bool fit = row[split.split] == "fit";
    if (!few || row[split.use] != "time" || !is_time(row[columns.metric])) continue;
    if ((!fit && row[split.split] != "score") || row[columns.framework] != framework.family) continue;
    try {
      Scenario scenario = scenario_of(columns, row, resolve);
      if (scenario.framework != framework.name) continue;
      progress();
      scenario.framework = name;
      RunRow run = run_row(columns, row, row[split.value], scenario, resolve);
      if (split.set) run.set = row[*split.set];
      (fit ? rows.fit : rows.score).push_back(std::move(run));
    } catch (const Error& reason) {  // a model that is not there, an unknown variant, ...
      ++rows.not_covered[reason.what()];
    }
  }
  return rows;
}

}  // namespace tbdsim
