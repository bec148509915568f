// Layouts of a training job as tables: the best found, one in detail, rows of a table.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "hwspecs/base/table.h"
#include "simulate/plan/search.h"

namespace tbdsim {

// The best layouts, why the first beats the second, and the front of time against memory.
[[nodiscard]] std::vector<Table> plan_tables(const Plan& plan, const PlanInputs& inputs,
                                             const std::string& title, Bytes usable);

// One layout: parts of the step, memory of the first and the last stage.
[[nodiscard]] Table layout_table(const LayoutPrediction& prediction, const PlanInputs& inputs,
                                 const std::string& title, Bytes usable);

// Columns that a table of layouts gets, and their values.
[[nodiscard]] std::span<const std::string_view> layout_result_columns();
[[nodiscard]] std::vector<std::string> layout_results(const LayoutPrediction& prediction);

}  // namespace tbdsim
