#include "simulate/report/observations_table.h"

#include <algorithm>

#include <fmt/format.h>

#include "hwspecs/base/suggest.h"
#include "simulate/prediction/metrics.h"

namespace tbdsim {
namespace {

// A limit with its unit: "50 %", "1".
std::string limit_text(double limit, const std::string& unit) {
  if (unit == kRatio) return fmt::format("{:.6g} %", kPercent * limit);
  return unit.empty() ? fmt::format("{}", limit) : fmt::format("{} {}", limit, unit);
}

// "50 % and more", "at most 1", "1.9 to 2.1".
std::string limits(const Check& check, const std::string& unit) {
  if (!check.at_least) return "at most " + limit_text(check.at_most.value_or(0), unit);
  if (!check.at_most) return limit_text(*check.at_least, unit) + " and more";
  const double least = unit == kRatio ? kPercent * *check.at_least : *check.at_least;
  return fmt::format("{:.6g} to {}", least, limit_text(*check.at_most, unit));
}

Cell value_cell(double value, const std::string& unit) {
  if (unit == kRatio) return bare_percent_cell(value);
  return number_cell(value, unit.empty() ? fmt::format("{:.3f}", value) : fmt::format("{:.1f}", value));
}

// "throughput, over batch before", "gpu_utilization".
std::string looked_at(const Check& check, const Observations& observations) {
  switch (check.over) {
    case Baseline::batch:
    case Baseline::last_batch:
      return check.metric + ", over batch before";
    case Baseline::gpu:
      return fmt::format("{}, {} over {}", check.metric, observations.other_gpu, observations.gpu);
    case Baseline::cases:
    case Baseline::nothing:
      return check.metric;
  }
  return check.metric;
}

std::vector<Cell> row_of(const Observation& observation, Verdict verdict, const CheckResult& result,
                         const Evidence& evidence, const Observations& observations) {
  return {number_cell(observation.number, std::to_string(observation.number)),
          text_cell(observation.statement),
          text_cell(name_of(verdict)),
          text_cell(evidence.subject),
          value_cell(evidence.value, result.unit),
          text_cell(limits(*result.check, result.unit)),
          flag_cell(evidence.holds),
          text_cell(looked_at(*result.check, observations))};
}

// A row of an observation that cannot be decided.
std::vector<Cell> empty_row(const Observation& observation) {
  std::vector<Cell> row{number_cell(observation.number, std::to_string(observation.number)),
                        text_cell(observation.statement), text_cell(name_of(Verdict::not_decidable))};
  row.resize(8, none_cell());
  return row;
}

void add_notes(const ObservationResult& result, Table& table) {
  const auto add = [&](const std::string& text) {
    for (const std::string& line : wrapped(text, kScreenWidth)) table.notes.push_back(line);
  };
  if (!result.observation->printed.empty()) add("printed: " + result.observation->printed);
  for (const CheckResult& check : result.checks) {
    if (check.check->needed < 1)
      add(fmt::format("{}: more than {:.0f} % of the cases decide", check.check->metric,
                      kPercent * check.check->needed));
    if (check.verdict == Verdict::does_not_hold && !check.check->reason.empty())
      add("why not: " + check.check->reason);
  }
}

// "holds: 1, 2, 5", one line for each verdict.
void add_summary(std::span<const ObservationResult> results, Table& table) {
  for (const Verdict verdict : {Verdict::holds, Verdict::does_not_hold, Verdict::not_decidable}) {
    std::vector<std::string> numbers;
    for (const ObservationResult& result : results) {
      if (result.verdict == verdict) numbers.push_back(std::to_string(result.observation->number));
    }
    std::string key(name_of(verdict));
    std::replace(key.begin(), key.end(), ' ', '_');
    table.totals.emplace_back(std::move(key), text_cell(numbers.empty() ? "none" : joined(numbers)));
  }
}

}  // namespace

std::vector<Table> observation_tables(const Observations& observations,
                                      std::span<const ObservationResult> results) {
  std::vector<Table> tables;
  for (const ObservationResult& result : results) {
    const Observation& observation = *result.observation;
    Table& table = tables.emplace_back();
    table.name = "observations";
    table.preface =
        wrapped(fmt::format("{}. {}: {}", observation.number, observation.statement, name_of(result.verdict)),
                kScreenWidth);
    table.columns = {{"number", ""},     {"statement", ""},        {"verdict", ""},
                     {"case", "case"},   {"value", "value", true}, {"limits", "expected"},
                     {"holds", "holds"}, {"metric", "metric"}};
    for (const CheckResult& check : result.checks) {
      for (const Evidence& evidence : check.evidence)
        table.rows.push_back(row_of(observation, result.verdict, check, evidence, observations));
    }
    if (table.rows.empty()) {
      table.preface.push_back(observation.not_decidable);
      table.rows.push_back(empty_row(observation));
    }
    add_notes(result, table);
  }
  if (!tables.empty()) add_summary(results, tables.back());
  return tables;
}

}  // namespace tbdsim
