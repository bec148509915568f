// Errors of the predictions of measured runs, from tables of runs; their table.
#pragma once

#include <functional>
#include <iosfwd>
#include <map>
#include <string>
#include <vector>

#include "calibrate/framework_fit/variance_components.h"
#include "simulate/prediction/resolve.h"

namespace tbdsim {

struct RunErrors {
  std::vector<RunError> runs;
  std::map<std::string, int> not_covered;  // reason -> rows
};

// The rows of a table that are read, and their sort.
struct RunSelection {
  std::string split;         // "fit"; of either split that is judged where empty
  bool development = false;  // RunError::development; " (development)" is added to the names of their sets
};

// Adds the rows of a table with use `time`, of the selection, with a throughput or an iteration time. Rows of
// one set with one prediction are repeats of a configuration, which counts once. `progress` is called before
// each prediction. Throws SpecError for a malformed table.
void add_run_errors(std::istream& in, const std::string& file, const RunSelection& selection,
                    const Resolver& resolve, const std::function<void()>& progress, RunErrors& errors);

// A line for each run, read again by read_run_errors: set, gpu, version, model, log_error, development
// (true, false), and "amount of ..." for each effect.
void write_run_errors(std::ostream& out, const std::vector<RunError>& runs);
// Adds such lines. Amounts without a column are 0; without `development` no run is of that sort. Throws
// SpecError for a malformed table.
void read_run_errors(std::istream& in, const std::string& file, std::vector<RunError>& runs);

}  // namespace tbdsim
