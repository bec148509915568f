// The command line of tbd-measure, by hand: it must build without third parties.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace tbdsim::measure {

struct Options {
  std::string output;                   // -o FILE
  std::string plan;                     // --plan FILE; empty: the built-in plan
  std::vector<std::string> only;        // --only OP, repeatable: these ops, others are left out
  std::vector<std::string> precisions;  // --precision P, repeatable
  double minutes = 0;                   // --minutes N; 0: until done
  int device = 0;                       // --device N
  std::uint64_t seed = 1;               // --seed N: order and inputs
  bool no_cupti = false;                // --no-cupti: CUDA events only
  bool self_test = false;               // --self-test: own kernels and timing against the CPU, on the GPU
  bool dry_run = false;
  bool list_ops = false;
  bool write_plan = false;  // --write-plan: the ordered plan as CSV on standard output
  bool help = false;
  bool version = false;
};

// Throws UsageError for an unknown option ("did you mean"), a missing or malformed value, an unknown op, or a
// run without -o. `arguments` without the program's name.
[[nodiscard]] Options parse_options(std::span<const std::string> arguments);

[[nodiscard]] std::string usage();
// The table of --list-ops.
[[nodiscard]] std::string ops_text();

}  // namespace tbdsim::measure
