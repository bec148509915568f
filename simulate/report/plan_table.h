// Layouts of a training job as tables: the best found, one in detail, rows of a table, before and after
// changes.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "hwspecs/base/spec_change.h"
#include "hwspecs/base/table.h"
#include "simulate/job/fitting.h"
#include "simulate/job/job_prediction.h"

namespace tbdsim {

// The best layouts, why the first beats the second, and the front of time against memory; what was assumed.
// Without `whole_front` the front has the fastest layout of each tenth of memory.
[[nodiscard]] std::vector<Table> plan_tables(const Plan& plan, const ResolvedJob& job,
                                             bool whole_front = false);

// One layout: parts of the step, memory of the first and the last stage; communication by dimension.
[[nodiscard]] std::vector<Table> layout_tables(const JobPrediction& prediction);

// Every metric of layouts on the hardware as it is and as changed.
[[nodiscard]] Table changed_table(const JobPrediction& before, const JobPrediction& after,
                                  const SpecChanges& changes);

// A number of the hardware, and the layout's step where it is larger.
struct Help {
  std::string key;  // "gpu.memory_bandwidth"
  Seconds step;
};
// Changes of the hardware that make the step shorter, the most first.
[[nodiscard]] Table helps_table(const JobPrediction& prediction, std::vector<Help> helps,
                                const std::string& change);

// Changes of a layout after which it fits. `remedies` is not empty.
[[nodiscard]] Table remedies_table(const std::vector<Remedy>& remedies, const ResolvedJob& job);

// Columns that a table of layouts gets, and their values.
[[nodiscard]] std::span<const std::string_view> layout_result_columns();
[[nodiscard]] std::vector<std::string> layout_results(const JobPrediction& prediction);

}  // namespace tbdsim
