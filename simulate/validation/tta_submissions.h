// Predictions beside measured runs to a target quality: throughput, time, and the order of systems.
#pragma once

#include <iosfwd>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "simulate/validation/tta_rules.h"
#include "simulate/workload/spec_cache.h"

namespace tbdsim {

// A row of a table of submissions (docs/formats.md).
struct Submission {
  std::string benchmark, round, gpu, precision;
  std::string split;             // fit or score
  std::string network, machine;  // empty: as the rules have it
  std::string target;            // as the table calls it; empty: that of the rules
  std::int64_t gpus = 1, nodes = 1;
  std::int64_t global_batch = 1;     // in the benchmark's unit, samples or tokens
  std::int64_t accumulate = 1;       // parts of a GPU's batch whose gradients are added up before an update
  std::optional<std::int64_t> runs;  // whose mean the time is; none: as many as the rules count
  double spread = 0;                 // standard deviation of those runs' times over their mean
  double samples_per_s = 0;          // 0: not known
  Seconds time;                      // to the target, mean of the runs
  std::optional<double> samples;     // until then
};

// Where a row has the times of all runs, its time is their result by the rules (result_of()). Throws
// SpecError for a malformed table, a missing column, a number that is none, or fewer times than the rules
// drop.
[[nodiscard]] std::vector<Submission> read_submissions(std::istream& in, const std::string& file,
                                                       const SuiteRules& rules);

struct SubmissionResult {
  const Submission* submission = nullptr;
  std::string status;  // "ok", or why there is no prediction
  double samples_per_s = 0;
  double rate_factor = 1;                  // 80 % of rates are expected within it
  std::optional<Seconds> time_of_samples;  // to the target after the measured samples
  // After the samples of the law fitted without this batch; none where the runs had another target.
  std::optional<Seconds> time_by_law;
  double samples_by_law = 0;
  double law_factor = 1;  // 80 % of mean times are expected within it

  [[nodiscard]] bool ok() const { return status == "ok"; }
};

[[nodiscard]] SubmissionResult predict_submission(const Submission& submission, const SuiteRules& rules,
                                                  SpecCache& specs);

inline constexpr double kAskedError = 0.15;

// Errors are |predicted / measured - 1|, medians over the rows that have a prediction.
struct SubmissionErrors {
  std::string split, benchmark;
  int rows = 0, covered = 0;
  std::optional<double> rate, rate_bias;  // of throughput; the median of predicted / measured - 1
  std::optional<double> time;             // given the measured samples
  std::optional<double> time_by_law;      // with the law's
  std::optional<double> samples_by_law;   // of the law alone
  std::optional<double> met;  // share of times by law off by kAskedError at most, or by the runs' spread
  // Share of times by law that are off by less than 80 % of single runs of that submission are, of those
  // whose runs are known one by one.
  std::optional<double> within_luck;
  std::optional<double> rate_inside, inside;  // share of rates, of times by law, within their intervals
  std::optional<double> tau;  // Kendall's tau-b of times given samples within each round, pairs pooled
  int pairs = 0;
};

struct SubmissionValidation {
  std::vector<SubmissionErrors> groups;  // by split, then benchmark
  std::map<std::string, int> not_covered;
};

// Predicts all on every core.
[[nodiscard]] SubmissionValidation validate_submissions(std::span<const Submission> submissions,
                                                        const SuiteRules& rules, SpecCache& specs);

}  // namespace tbdsim
