// A command of tbd-sim: how its options are read and what it does with them. Each is one file with a function
// of the list below, which adds it to the command line.
#pragma once

#include <cstddef>
#include <functional>
#include <iosfwd>
#include <string>

#include <CLI/CLI.hpp>

#include "simulate/workload/spec_cache.h"

namespace tbdsim {

// Receives what a command says beside its output: for every row of a long table the number of rows done and
// of all rows (0: unknown), when it may throw to stop, and remarks.
struct Progress {
  std::function<void(std::size_t rows, std::size_t of)> report;
  std::function<void(const std::string& remark)> note;
  void operator()(std::size_t rows, std::size_t of = 0) const { report(rows, of); }
};

// Throws UsageError, SpecError or ModelError.
using CommandRun = std::function<void(SpecCache& specs, std::ostream& out, const Progress& progress)>;

struct Command {
  CLI::App* app = nullptr;  // of the root, or the root itself
  CommandRun run;
  bool long_work = false;  // it calls `progress`, and writes nothing if that throws
  bool* terminal =
      nullptr;  // set before `run` for a command whose tables have a form of their own on a terminal
};

[[nodiscard]] Command add_predict_scenario(CLI::App& root);  // the root command, without a name
[[nodiscard]] Command add_list(CLI::App& root);
[[nodiscard]] Command add_show(CLI::App& root);
[[nodiscard]] Command add_kernels(CLI::App& root);
[[nodiscard]] Command add_memory(CLI::App& root);
[[nodiscard]] Command add_max_batch(CLI::App& root);
[[nodiscard]] Command add_trace(CLI::App& root);
[[nodiscard]] Command add_report(CLI::App& root);
[[nodiscard]] Command add_serve(CLI::App& root);
[[nodiscard]] Command add_scaling(CLI::App& root);
[[nodiscard]] Command add_predict_table(CLI::App& root);  // the command `predict`
[[nodiscard]] Command add_validate(CLI::App& root);
[[nodiscard]] Command add_observations(CLI::App& root);
[[nodiscard]] Command add_completion(CLI::App& root);
[[nodiscard]] Command add_sweep(CLI::App& root);
[[nodiscard]] Command add_whatif(CLI::App& root);
[[nodiscard]] Command add_plan(CLI::App& root);
[[nodiscard]] Command add_tta(CLI::App& root);
[[nodiscard]] Command add_import(CLI::App& root);
[[nodiscard]] Command add_compare(CLI::App& root);
[[nodiscard]] Command add_doctor(CLI::App& root);

}  // namespace tbdsim
