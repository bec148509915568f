// Tables of training runs (the schema in docs/formats.md): which scenario a row describes, and its prediction
// in the row's own unit.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hwspecs/base/csv.h"
#include "simulate/prediction/prediction.h"
#include "simulate/prediction/resolve.h"

namespace tbdsim {

// Indices of the columns that describe a run. All but the optional ones must be there.
struct RunColumns {
  explicit RunColumns(const CsvReader& reader);  // throws SpecError naming the missing columns

  std::size_t gpu, framework, precision, model, variant, batch_per_gpu, gpus, machines, metric, unit;
  std::optional<std::size_t> version;         // of the framework
  std::optional<std::size_t> tokens_per_gpu;  // instead of batch_per_gpu, where a row has it
  std::optional<std::size_t> set;             // of runs; a machine of its name is what they were measured on
  std::optional<std::size_t> network;  // a word of synthesize_machine, a link between machines, or a rate
  std::optional<std::size_t> method;   // a SyncMethod's name
  std::optional<std::size_t> input, input_workers, input_time;  // as the scenario keys of these names
};

struct RowPrediction {
  std::string status;  // "ok", or why the row is not covered
  double predicted = 0;
  Interval interval;  // 80 %

  [[nodiscard]] bool ok() const { return status == "ok"; }
};

// The scenario of a row, with the framework of its version. Throws Error with the reason where the row is not
// covered.
[[nodiscard]] Scenario scenario_of(const RunColumns& columns, std::span<const std::string> row,
                                   const Resolver& resolve);

// The prediction in the row's metric and unit. Throws Error where it has none.
[[nodiscard]] RowPrediction predicted_value(const RunColumns& columns, std::span<const std::string> row,
                                            const Prediction& prediction, const Resolver& resolve);

// Never throws for the contents of a row: an error becomes its status.
[[nodiscard]] RowPrediction predict_row(const RunColumns& columns, std::span<const std::string> row,
                                        const Resolver& resolve, const std::string& profile);

}  // namespace tbdsim
