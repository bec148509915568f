#include "calibrate/cli/fit_intervals.h"

#include <map>
#include <ostream>
#include <set>

#include <fmt/format.h>

#include "calibrate/framework_fit/run_errors.h"
#include "hwspecs/base/error.h"
#include "hwspecs/base/file.h"
#include "hwspecs/base/suggest.h"
#include "simulate/workload/spec_cache.h"

namespace tbdsim {
namespace {

using Runs = std::vector<RunError>;

std::set<std::string> sets_of(const Runs& runs) {
  std::set<std::string> sets;
  for (const RunError& run : runs) sets.insert(run.set);
  return sets;
}

Runs those(const Runs& runs, const std::string& set, bool in) {
  Runs found;
  for (const RunError& run : runs) {
    if ((run.set == set) == in) found.push_back(run);
  }
  return found;
}

void write_components(const VarianceFit& fit, std::ostream& out) {
  out << "effect             sd of ln(time)  in predictions\n";
  for (std::size_t e = 0; e < kEffectNames.size(); ++e) {
    out << fmt::format("{:<17}  {:>14.3f}  {:>14.3f}{}\n", kEffectNames[e], fit.components[e], kComponents[e],
                       fit.pooled[e] ? "  not estimated here" : "");
  }
  if (!fit.sets_of_one.empty())
    out << "sets of one run have no component of their own; the pooled one stands for them: "
        << joined(fit.sets_of_one) << '\n';
}

// Share of each set's runs within the interval: with the components that predictions have, and with those of
// the other sets' rows of split fit.
void write_coverage(const Runs& fit, const Runs& score, std::ostream& out) {
  out << "\nset                  split  runs  within 80 %  components of other sets\n";
  for (const auto& [split, runs] : {std::pair("fit", &fit), std::pair("score", &score)}) {
    for (const std::string& set : sets_of(*runs)) {
      const Runs of_set = those(*runs, set, true);
      const Runs others = those(fit, set, false);
      constexpr std::size_t kLeast = 3;
      const std::string left_out =
          others.size() < kLeast
              ? "-"
              : fmt::format("{:.0f} %", 100 * coverage_of(variance_components(others).components, of_set));
      out << fmt::format("{:<19}  {:<5}  {:>4}  {:>9.0f} %  {:>24}\n", set, split, of_set.size(),
                         100 * coverage_of(kComponents, of_set), left_out);
    }
  }
}

}  // namespace

void interval_fit_command(const IntervalFitCommand& command, const ProgramContext& context) {
  if (command.files.empty()) throw UsageError("fit-intervals: expected tables of runs");
  SpecCache specs(Catalog::from(context.data_dir));
  if (context.catch_signals != nullptr) context.catch_signals();
  std::size_t rows = 0;
  const auto progress = [&] {
    stop_if_interrupted(context);
    if (context.show_progress) context.err << "\r\033[Krow " << ++rows << std::flush;
  };
  RunErrors fit, score;
  for (const std::string& file : command.files) {
    for (const auto& [split, errors] : {std::pair("fit", &fit), std::pair("score", &score)}) {
      std::ifstream in = open_input(file);
      add_run_errors(in, file, split, specs, progress, *errors);
    }
  }
  if (context.show_progress) context.err << "\r\033[K";
  if (fit.runs.empty())
    throw UsageError("fit-intervals: no row to fit to; expected rows with use time and split fit");
  context.out << fmt::format("{} configurations of split fit\n", fit.runs.size());
  for (const auto& [reason, count] : fit.not_covered)
    context.out << fmt::format("{} not covered: {}\n", count, reason);
  context.out << '\n';
  write_components(variance_components(fit.runs), context.out);
  write_coverage(fit.runs, score.runs, context.out);
}

}  // namespace tbdsim
