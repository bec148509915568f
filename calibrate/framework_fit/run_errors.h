// Errors of the predictions of measured runs, read from tables of runs.
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

// Adds the rows of a table with use `time`, this split, and a throughput or an iteration time. Rows of one
// set with one prediction are repeats of a configuration, which counts once. `progress` is called before each
// prediction. Throws SpecError for a malformed table.
void add_run_errors(std::istream& in, const std::string& file, const std::string& split,
                    const Resolver& resolve, const std::function<void()>& progress, RunErrors& errors);

}  // namespace tbdsim
