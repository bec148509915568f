// The rows of a table of runs that can tell constants of a framework: what is measured in time on one GPU,
// or, where they are asked for, on several of one machine, whose exchange counts as predicted.
#pragma once

#include <functional>
#include <iosfwd>
#include <map>
#include <string>
#include <vector>

#include "simulate/prediction/prediction.h"

namespace tbdsim {

struct RunRow {
  std::string set;        // the data set it is from; may be empty
  Prediction prediction;  // with the framework as it is
  Seconds measured;       // an iteration; where a throughput was measured, as long as that means
  bool rate = false;      // a throughput was measured

  // As `validate` has it: of what was measured, predicted / measured - 1.
  [[nodiscard]] double error(const Framework& framework) const;
};

struct RunRows {
  int most_gpus = 1;
  std::vector<RunRow> fit, score;          // by their split
  std::map<std::string, int> not_covered;  // reason -> rows of either
};

// "single-GPU runs", "runs of up to 2 GPUs".
[[nodiscard]] std::string runs_text(const RunRows& rows);

// Rows of up to so many GPUs in one machine, with use `time` and a throughput or an iteration time, whose
// version means the framework (by its family and name). `name` is what the library finds it by. `progress` is
// called before each prediction. Throws SpecError for a malformed table.
[[nodiscard]] RunRows read_run_rows(std::istream& in, const std::string& file, const std::string& name,
                                    int most_gpus, SpecCache& specs, const std::function<void()>& progress);

}  // namespace tbdsim
