// Predictions beside measured runs to a target quality: throughput, time, and the order of systems.
#pragma once

#include <iosfwd>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "simulate/prediction/resolve.h"
#include "simulate/validation/tta_rules.h"

namespace tbdsim {

// A row of a table of submissions (docs/formats.md).
struct Submission {
  std::string benchmark, round, gpu, precision;
  std::string split;             // fit or score
  std::string network, machine;  // empty: as the rules have it
  std::int64_t gpus = 1, nodes = 1, global_batch = 1;
  double samples_per_s = 0;       // 0: not known
  Seconds time;                   // to the target, mean of the runs
  std::optional<double> samples;  // until then
};

// Throws SpecError for a malformed table, a missing column or a number that is none.
[[nodiscard]] std::vector<Submission> read_submissions(std::istream& in, const std::string& file);

struct SubmissionResult {
  const Submission* submission = nullptr;
  std::string status;  // "ok", or why there is no prediction
  double samples_per_s = 0;
  std::optional<Seconds> time_of_samples;  // to the target after the measured samples
  Seconds time_by_law;                     // after those of the law fitted without this batch
  double samples_by_law = 0;
  double law_factor = 1;  // 80 % of times are expected within it

  [[nodiscard]] bool ok() const { return status == "ok"; }
};

[[nodiscard]] SubmissionResult predict_submission(const Submission& submission, const SuiteRules& rules,
                                                  const Resolver& resolve);

// Errors are |predicted / measured - 1|, medians over the rows that have a prediction.
struct SubmissionErrors {
  std::string split, benchmark;
  int rows = 0, covered = 0;
  std::optional<double> rate, rate_bias;  // of throughput; the median of predicted / measured - 1
  std::optional<double> time;             // given the measured samples
  std::optional<double> time_by_law;      // with the law's
  std::optional<double> samples_by_law;   // of the law alone
  std::optional<double> inside;           // share of times within the interval of those by law
  std::optional<double> tau;  // Kendall's tau-b of times given samples within each round, pairs pooled
  int pairs = 0;
};

struct SubmissionValidation {
  std::vector<SubmissionErrors> groups;  // by split, then benchmark
  std::map<std::string, int> not_covered;
};

// Predicts all on every core.
[[nodiscard]] SubmissionValidation validate_submissions(std::span<const Submission> submissions,
                                                        const SuiteRules& rules, const Resolver& resolve);

}  // namespace tbdsim
