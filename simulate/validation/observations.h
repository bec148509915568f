// The observations of a paper as checks on predictions: the statements as data (keys are described in
// simulate/validation/observations/tbd.yaml), and a verdict on each.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "simulate/prediction/prediction.h"
#include "simulate/prediction/resolve.h"

namespace tbdsim {

// A model on a framework, at ascending batches.
struct ObservedCase {
  std::string name;
  std::string model;
  std::string framework;
  std::string variant, precision, target;  // empty: as in a Scenario
  std::string gpu;                         // instead of Observations::gpu
  std::vector<std::int64_t> batches;
  bool in_tokens = false;  // they count steps of all samples together
  Cluster cluster;         // default: one GPU; the batch is that of each GPU
};

// The value that a metric is divided by.
enum class Baseline { nothing, batch, last_batch, gpu, cases };

struct Check {
  std::vector<std::string> of;  // cases
  std::string metric;
  Baseline over = Baseline::nothing;
  std::vector<std::string> over_cases;  // the lowest of them
  std::optional<std::int64_t> at;       // this batch instead of the largest that fits
  std::optional<double> at_least;
  std::optional<double> at_most;
  double needed = 1;   // more than this share of the values within the limits; 1: all of them
  std::string reason;  // why it does not hold, where a reason is recorded
};

struct Observation {
  int number = 0;
  std::string statement;
  std::string printed;  // figures of the paper beside it
  std::vector<Check> checks;
  std::string not_decidable;  // why there are none
};

struct Observations {
  std::string title;
  std::string source;
  std::string gpu;
  std::string other_gpu;
  std::map<std::string, ObservedCase> cases;
  std::vector<Observation> observations;
};

enum class Verdict { holds, does_not_hold, not_decidable };
[[nodiscard]] std::string_view name_of(Verdict verdict);

struct Evidence {
  std::string subject;  // "nmt, batch 128 over 64"
  double value = 0;     // a ratio, or in the metric's unit
  bool holds = false;
};

struct CheckResult {
  const Check* check = nullptr;
  std::string unit;  // of the values, as metrics have it; empty where they are over another value
  std::vector<Evidence> evidence;  // one for each case, of several batches the one farthest from holding
  Verdict verdict = Verdict::not_decidable;
};

struct ObservationResult {
  const Observation* observation = nullptr;
  std::vector<CheckResult> checks;
  Verdict verdict = Verdict::not_decidable;  // holds where every check does
};

// Predicts every case at every batch on both GPUs and looks. A case of which too few batches fit gives no
// evidence. Throws UsageError, SpecError or ModelError. Results refer to `observations`.
[[nodiscard]] std::vector<ObservationResult> observe(const Observations& observations,
                                                     const Resolver& resolve);

}  // namespace tbdsim
