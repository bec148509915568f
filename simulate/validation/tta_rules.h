// Settings with which submissions of a benchmark suite are predicted, from simulate/validation/benchmarks/.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "graphs/model.h"
#include "simulate/prediction/time_to_target.h"

namespace tbdsim {

struct BenchmarkRules {
  std::string model, variant, framework;
  std::string target;  // empty: none is known, and throughput alone is judged
  int runs = 1;
  int dropped = 0;       // of the fastest and of the slowest each
  Sizes sizes;           // other than the model's own
  std::string exchange;  // method of exchanging gradients; empty: the framework's
  // Framework::spread for this network, where rates of submissions tell; none: the framework's.
  std::optional<double> spread;
  double batch_unit = 1;  // what a batch is counted in, of a sample: 30 where a sample has 30 tokens
};

struct SuiteRules {
  std::string title;
  std::string source;
  TimedParts timed;
  std::map<std::string, std::string> precisions;  // as a table calls them -> name
  std::map<std::string, std::string> machines;    // GPU -> machine
  // GPUs that NVLink joins though each few of them are a machine, by GPU; their machine's file holds them
  // all.
  std::map<std::string, std::int64_t> domains;
  std::string network;  // between machines of other GPUs
  std::map<std::string, BenchmarkRules> benchmarks;
};

// Throws UsageError or SpecError.
[[nodiscard]] SuiteRules read_suite_rules(const std::filesystem::path& file);

// The result of runs by the rules: the mean of their times without the fastest and slowest. Precondition:
// more times than are dropped.
[[nodiscard]] Seconds result_of(std::vector<Seconds> times, const BenchmarkRules& rules);

}  // namespace tbdsim
