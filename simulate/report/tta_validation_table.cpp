#include "simulate/report/tta_validation_table.h"

#include <fmt/format.h>

namespace tbdsim {
namespace {

constexpr std::size_t kNoteWidth = 100;

Cell percent_or_none(const std::optional<double>& ratio) {
  return ratio ? bare_percent_cell(*ratio) : none_cell();
}

}  // namespace

Table tta_validation_table(const SubmissionValidation& validation, const SuiteRules& rules) {
  Table table;
  table.name = "groups";
  table.preface = {rules.title + ": " + rules.source, ""};
  table.columns = {{"split", "split"},
                   {"benchmark", "benchmark"},
                   {"rows", "rows", true},
                   {"covered", "covered", true},
                   {"rate_error", "rate", true},
                   {"rate_bias", "bias", true},
                   {"time_error", "time", true},
                   {"law_time_error", "by law", true},
                   {"law_samples_error", "law", true},
                   {"met", "met", true},
                   {"within_luck", "luck", true},
                   {"rate_inside", "rate in", true},
                   {"inside", "inside", true},
                   {"tau", "tau", true},
                   {"pairs", "pairs", true}};
  for (const SubmissionErrors& e : validation.groups) {
    table.rows.push_back(
        {text_cell(e.split), text_cell(e.benchmark), count_cell(e.rows), count_cell(e.covered),
         percent_or_none(e.rate), e.rate_bias ? signed_bare_percent_cell(*e.rate_bias) : none_cell(),
         percent_or_none(e.time), percent_or_none(e.time_by_law), percent_or_none(e.samples_by_law),
         percent_or_none(e.met), percent_or_none(e.within_luck), percent_or_none(e.rate_inside),
         percent_or_none(e.inside), e.tau ? number_cell(*e.tau, fmt::format("{:.2f}", *e.tau)) : none_cell(),
         count_cell(e.pairs)});
  }
  const char* legend =
      "Median errors in %. rate: throughput, bias: its sign; time: to the target after the measured samples; "
      "by law: after those of the law, fitted without the row's batch; law: its samples alone; met: share of "
      "times by law off by 15 % or by the spread of their runs at most; luck: off by no more than 80 % of "
      "single runs of their submission; rate in, inside: share of throughputs, and of times by law, within "
      "their 80 % interval; tau: Kendall's tau-b, of the order of systems within each round by time, over so "
      "many pairs.";
  for (const std::string& line : wrapped(legend, kNoteWidth)) table.notes.push_back(line);
  table.counts_name = "not_covered";
  table.counts = validation.not_covered;
  for (const auto& [reason, rows] : validation.not_covered) {
    for (const std::string& line : wrapped(fmt::format("not covered, {} rows: {}", rows, reason), kNoteWidth))
      table.notes.push_back(line);
  }
  return table;
}

}  // namespace tbdsim
