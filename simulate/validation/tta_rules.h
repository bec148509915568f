// Settings with which submissions of a benchmark suite are predicted, from simulate/validation/benchmarks/.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "graphs/model.h"
#include "simulate/prediction/time_to_target.h"

namespace tbdsim {

// Keys and values of set_job().
using JobSettings = std::vector<std::pair<std::string, std::string>>;

// How the scripts of a round lay out a decoder on GPUs of a sort, `gpus` to `most` of them.
struct ScriptedLayout {
  std::string round, gpu;  // empty: of any
  std::int64_t gpus = 1, most = 1;
  JobSettings settings;
};

struct BenchmarkRules {
  std::string model, variant, framework;        // the last two are empty for a decoder that is divided
  std::map<std::string, std::string> variants;  // of GPUs whose scripts choose another, by GPU
  std::string target;                           // empty: none is known, and throughput alone is judged
  int runs = 1;
  int dropped = 0;       // of the fastest and of the slowest each
  Sizes sizes;           // other than the model's own
  std::string exchange;  // method of exchanging gradients; empty: the framework's
  // Framework::spread for this network, where rates of submissions tell; none: the framework's.
  std::optional<double> spread;
  // Data that GPUs keep between them where they have room, and a machine's host has otherwise, from which
  // batches are then copied beside the training.
  Bytes resident;
  Seconds loading;        // of data with the clock running, before the first step
  double batch_unit = 1;  // what a batch is counted in, of a sample: 30 where a sample has 30 tokens
  std::map<std::string, std::string> precisions;  // as those of the suite, before them
  JobSettings job;  // of a decoder that is divided over the GPUs (simulate/job); empty: data parallelism
  std::vector<ScriptedLayout> layouts;  // of submissions whose scripts were read; of others the fastest

  [[nodiscard]] bool is_divided() const { return !job.empty(); }
};

// How the first rounds differ: what was tuned for later ones was not there yet.
struct EarlierRounds {
  std::set<std::string> rounds;
  std::map<std::string, std::string> frameworks;  // of later rounds -> of these
  std::map<std::string, Sizes> sizes;             // by benchmark, instead of its sizes
  std::set<std::string> tuned;                    // benchmarks whose code was tuned then as it is later
};

struct SuiteRules {
  std::string title;
  std::string source;
  TimedParts timed;
  // Names of a table, or "NAME on GPU", -> names of the catalogue.
  std::map<std::string, std::string> precisions;
  std::map<std::string, std::string> machines;  // GPU -> machine
  // GPUs that NVLink joins though each few of them are a machine, by GPU; their machine's file holds them
  // all.
  std::map<std::string, std::int64_t> domains;
  std::string network;  // between machines of other GPUs
  std::map<std::string, BenchmarkRules> benchmarks;
  std::map<std::string, std::string> not_predicted;  // benchmark -> why
  EarlierRounds earlier;
};

// The rules of a benchmark in a round. Throws UsageError where there are none, with the reason.
[[nodiscard]] BenchmarkRules benchmark_in(const SuiteRules& rules, const std::string& benchmark,
                                          const std::string& round);

// Throws UsageError or SpecError.
[[nodiscard]] SuiteRules read_suite_rules(const std::filesystem::path& file);

// The precision of what a table calls so, for a GPU by its name in the catalogue. Throws UsageError.
[[nodiscard]] const std::string& precision_of(const SuiteRules& rules, const BenchmarkRules& benchmark,
                                              const std::string& called, const std::string& gpu);

// The result of runs by the rules: the mean of their times without the fastest and slowest. Precondition:
// more times than are dropped.
[[nodiscard]] Seconds result_of(std::vector<Seconds> times, const BenchmarkRules& rules);

}  // namespace tbdsim
