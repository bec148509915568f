#include "simulate/validation/tta_submissions.h"

#include <algorithm>
#include <cmath>
#include <compare>
#include <sstream>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "hwspecs/base/csv.h"
#include "hwspecs/base/error.h"
#include "hwspecs/base/number.h"
#include "hwspecs/base/statistics.h"
#include "hwspecs/base/suggest.h"
#include "simulate/prediction/uncertainty.h"
#include "simulate/validation/submitted_run.h"
#include "simulate/workload/parallel.h"

namespace tbdsim {
namespace {

constexpr std::int64_t kMost = 1'000'000'000;

// One row of the table, column by column.
class Row {
 public:
  Row(const CsvReader& reader, const std::vector<std::string>& fields) : reader_(reader), fields_(fields) {}

  [[nodiscard]] const std::string& text(std::string_view column) const {
    return fields_[reader_.column(column)];
  }
  [[nodiscard]] std::string text_or(std::string_view column, const std::string& unless) const {
    const auto found = reader_.find_column(column);
    return found && !fields_[*found].empty() ? fields_[*found] : unless;
  }
  [[nodiscard]] std::int64_t count(std::string_view column) const {
    const auto number = parse_whole_number(text(column));
    if (number && *number >= 1 && *number <= kMost) return *number;
    fail(column, fmt::format("is no whole number from 1 to {}", kMost));
  }
  // None where the field is empty or the column is missing.
  [[nodiscard]] std::optional<double> number(std::string_view column) const {
    const auto number = number_or_zero(column);
    if (number && *number == 0) fail(column, "is no number above 0");
    return number;
  }
  [[nodiscard]] std::optional<double> number_or_zero(std::string_view column) const {
    const std::string field = text_or(column, "");
    if (field.empty()) return std::nullopt;
    const auto number = parse_number(field);
    if (number && *number >= 0) return number;
    fail(column, "is no number above 0");
  }
  [[noreturn]] void fail(std::string_view column, const std::string& what) const {
    throw SpecError(reader_.row_mark(), fmt::format("{}: {} {}", column, in_quotes(text(column)), what));
  }

 private:
  const CsvReader& reader_;
  const std::vector<std::string>& fields_;
};

// Standard deviation of the times over their mean; 0 for one.
double spread_of(const std::vector<Seconds>& times) {
  double sum = 0, squares = 0;
  for (const Seconds time : times) {
    sum += time.si();
    squares += time.si() * time.si();
  }
  const auto n = static_cast<double>(times.size());
  if (times.size() < 2) return 0;
  return std::sqrt(std::max(0.0, (squares - sum * sum / n) / (n - 1))) / (sum / n);
}

// Takes the row's time from its mean, or from all of its runs.
void read_time(const Row& row, const SuiteRules& rules, Submission& s) {
  const std::string listed = row.text_or("run_times_s", "");
  if (listed.empty()) {
    const auto time = row.number("tta_mean_s");
    if (!time) row.fail("tta_mean_s", "is missing; expected the mean time to the target in seconds");
    s.time = Seconds(*time);
    return;
  }
  std::vector<Seconds> times;
  std::istringstream words(listed);
  for (std::string word; words >> word;) {
    const auto time = parse_number(word);
    if (!time || *time <= 0)
      row.fail("run_times_s", "has " + in_quotes(word) + "; expected seconds, with spaces between");
    times.emplace_back(*time);
  }
  const auto found = rules.benchmarks.find(s.benchmark);
  const BenchmarkRules benchmark = found == rules.benchmarks.end() ? BenchmarkRules{} : found->second;
  const std::size_t dropped = 2 * static_cast<std::size_t>(benchmark.dropped);
  if (times.size() <= dropped) {
    row.fail("run_times_s",
             fmt::format("has {} times, of which the rules drop {}; expected more", times.size(), dropped));
  }
  s.spread = spread_of(times);
  s.runs = static_cast<std::int64_t>(times.size() - dropped);
  s.time = result_of(std::move(times), benchmark);
}

Submission submission_of(const Row& row, const SuiteRules& rules) {
  Submission s;
  s.benchmark = row.text("benchmark");
  s.round = row.text_or("round", "");
  s.gpu = row.text("gpu");
  s.precision = row.text_or("precision", "");
  s.split = row.text_or("split", "score");
  if (s.split != "fit" && s.split != "score") row.fail("split", "is neither fit nor score");
  s.network = row.text_or("network", "");
  s.machine = row.text_or("machine", "");
  s.target = row.text_or("target", "");
  s.gpus = row.count("gpus");
  s.nodes = row.count("nodes");
  s.global_batch = row.count("global_batch");
  if (!row.text_or("grad_accum", "").empty()) s.accumulate = row.count("grad_accum");
  s.samples_per_s = row.number("samples_per_s").value_or(0);
  s.samples = row.number("samples_mean");
  if (!row.text_or("runs_ok", "").empty()) s.runs = row.count("runs_ok");
  s.spread = row.number_or_zero("tta_cv").value_or(0);
  read_time(row, rules, s);
  return s;
}

// Epochs by the points of other batches, or by all where no two others are left.
EpochsToTarget epochs_without(const Convergence& to, double batch) {
  const std::vector<ConvergencePoint> others = without_batch(to.points, batch);
  const bool too_few = others.empty() || others.front().batch == others.back().batch;
  if (too_few || others.size() == to.points.size()) return epochs_to_target(to, batch);
  return epochs_to_target(to, fit_convergence_law(others), others, batch);
}

void fill(SubmissionResult& result, const SuiteRules& rules, SpecCache& specs) {
  const Submission& s = *result.submission;
  const SubmittedRun run = run_of(s, rules, specs);
  result.samples_per_s = run.samples_per_s;
  result.rate_factor = run.rate_factor;
  if (run.to == nullptr) return;
  const Convergence& to = *run.to;
  if (s.samples) {
    EpochsToTarget measured;
    measured.epochs = *s.samples / to.epoch;
    result.time_of_samples = run.time(measured);
  }
  if (!to.is_measured() || (!s.target.empty() && !to.is_called(s.target))) return;
  const EpochsToTarget epochs = epochs_without(to, run.batch);
  const BenchmarkRules& benchmark = rules.benchmarks.at(s.benchmark);
  const auto runs = static_cast<int>(s.runs.value_or(benchmark.runs - 2 * benchmark.dropped));
  result.time_by_law = run.time(epochs);
  result.samples_by_law = epochs.epochs * to.epoch;
  result.law_factor = std::exp(std::hypot(std::log(run.rate_factor), kEightyPercent * epochs.spread(runs)));
}

double error_of(double predicted, double measured) { return predicted / measured - 1; }

std::optional<double> median_size(std::vector<double> errors) {
  if (errors.empty()) return std::nullopt;
  for (double& error : errors) error = std::abs(error);
  return median(std::move(errors));
}

bool is_within(double ratio, double factor) { return std::abs(std::log(ratio)) <= std::log(factor); }

std::optional<double> share_of(int count, const std::vector<double>& all) {
  if (all.empty()) return std::nullopt;
  return static_cast<double>(count) / static_cast<double>(all.size());
}

using Results = std::vector<const SubmissionResult*>;

// Kendall's tau-b over the pairs of systems of one round: systems that are alike are predicted alike.
void add_order(const Results& results, SubmissionErrors& errors) {
  int agreeing = 0, measured_apart = 0, predicted_apart = 0;
  for (std::size_t i = 0; i < results.size(); ++i) {
    for (std::size_t j = i + 1; j < results.size(); ++j) {
      const SubmissionResult &a = *results[i], &b = *results[j];
      if (a.submission->round != b.submission->round || !a.time_of_samples || !b.time_of_samples) continue;
      ++errors.pairs;
      const auto measured = a.submission->time <=> b.submission->time;
      const auto predicted = *a.time_of_samples <=> *b.time_of_samples;
      measured_apart += measured != 0;
      predicted_apart += predicted != 0;
      if (measured != 0 && predicted != 0) agreeing += measured == predicted ? 1 : -1;
    }
  }
  if (measured_apart > 0 && predicted_apart > 0)
    errors.tau = agreeing / std::sqrt(static_cast<double>(measured_apart) * predicted_apart);
}

void add_errors(const Results& results, SubmissionErrors& errors) {
  std::vector<double> rates, times, by_law, samples, of_known_spread;
  int rates_inside = 0, inside = 0, met = 0, within_luck = 0;
  for (const SubmissionResult* result : results) {
    const Submission& s = *result->submission;
    if (s.samples_per_s > 0) {
      rates.push_back(error_of(result->samples_per_s, s.samples_per_s));
      rates_inside += is_within(result->samples_per_s / s.samples_per_s, result->rate_factor);
    }
    if (result->time_of_samples) times.push_back(error_of(*result->time_of_samples / s.time, 1));
    if (!result->time_by_law) continue;
    const double ratio = *result->time_by_law / s.time;
    by_law.push_back(error_of(ratio, 1));
    inside += is_within(ratio, result->law_factor);
    met += std::abs(ratio - 1) <= std::max(kAskedError, s.spread);
    if (s.spread > 0) {
      of_known_spread.push_back(s.spread);
      within_luck += std::abs(ratio - 1) <= kEightyPercent * s.spread;
    }
    if (s.samples) samples.push_back(error_of(result->samples_by_law, *s.samples));
  }
  errors.covered = static_cast<int>(results.size());
  errors.rate = median_size(rates);
  if (!rates.empty()) errors.rate_bias = median(rates);
  errors.time = median_size(times);
  errors.time_by_law = median_size(by_law);
  errors.samples_by_law = median_size(samples);
  errors.met = share_of(met, by_law);
  errors.within_luck = share_of(within_luck, of_known_spread);
  errors.inside = share_of(inside, by_law);
  errors.rate_inside = share_of(rates_inside, rates);
  add_order(results, errors);
}

}  // namespace

std::vector<Submission> read_submissions(std::istream& in, const std::string& file, const SuiteRules& rules) {
  CsvReader reader(in, file);
  std::vector<Submission> submissions;
  for (std::vector<std::string> fields; reader.next(fields);)
    submissions.push_back(submission_of(Row(reader, fields), rules));
  return submissions;
}

SubmissionResult predict_submission(const Submission& submission, const SuiteRules& rules, SpecCache& specs) {
  SubmissionResult result;
  result.submission = &submission;
  try {
    fill(result, rules, specs);
    result.status = "ok";
  } catch (const Error& reason) {
    result.status = reason.what();
  }
  return result;
}

SubmissionValidation validate_submissions(std::span<const Submission> submissions, const SuiteRules& rules,
                                          SpecCache& specs) {
  std::vector<SubmissionResult> results(submissions.size());
  for_each_index(results.size(),
                 [&](std::size_t i) { results[i] = predict_submission(submissions[i], rules, specs); });
  SubmissionValidation validation;
  std::map<std::pair<std::string, std::string>, std::pair<int, Results>> groups;
  for (const SubmissionResult& result : results) {
    auto& [rows, covered] = groups[{result.submission->split, result.submission->benchmark}];
    ++rows;
    if (result.ok()) {
      covered.push_back(&result);
    } else {
      ++validation.not_covered[result.status];
    }
  }
  for (const auto& [key, group] : groups) {
    SubmissionErrors& errors = validation.groups.emplace_back();
    std::tie(errors.split, errors.benchmark) = key;
    errors.rows = group.first;
    add_errors(group.second, errors);
  }
  return validation;
}

}  // namespace tbdsim
