// The rows of a table of runs that constants of a framework can be fitted to: times measured on one GPU or,
// on request, on several GPUs of one machine; the time of their gradient synchronization counts as predicted.
#pragma once

#include <functional>
#include <iosfwd>
#include <map>
#include <string>
#include <vector>

#include "simulate/prediction/predict.h"

namespace tbdsim {

struct RunRow {
  std::string set;        // data set of the row; may be empty
  Prediction prediction;  // with the framework as it is
  Seconds measured;       // time of an iteration; converted where a throughput was measured
  bool rate = false;      // a throughput was measured

  // predicted / measured - 1 of the measured quantity, as `tbd-sim validate` reports it.
  [[nodiscard]] double error(const Framework& framework) const;
};

struct RunRows {
  int most_gpus = 1;
  std::vector<RunRow> fit, score;          // by their split
  std::map<std::string, int> not_covered;  // reason -> rows of either
};

// "single-GPU runs", "runs of up to 2 GPUs".
[[nodiscard]] std::string runs_text(const RunRows& rows);

// Reads the rows with up to `most_gpus` GPUs in one machine, use `time`, a throughput or an iteration time,
// and a version that means `framework`, which `name` (or path) resolves to. `progress` is called before each
// prediction. Throws SpecError for a malformed table.
[[nodiscard]] RunRows read_run_rows(std::istream& in, const std::string& file, const std::string& name,
                                    const Framework& framework, int most_gpus, const Resolver& resolve,
                                    const std::function<void()>& progress);

}  // namespace tbdsim
