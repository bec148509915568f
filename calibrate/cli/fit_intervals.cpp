#include "calibrate/cli/fit_intervals.h"

#include <algorithm>
#include <functional>
#include <map>
#include <ostream>
#include <set>

#include <fmt/format.h>

#include "calibrate/framework_fit/interval_fit.h"
#include "calibrate/framework_fit/run_errors.h"
#include "hwspecs/base/error.h"
#include "hwspecs/base/file.h"
#include "hwspecs/base/suggest.h"
#include "simulate/workload/spec_cache.h"

namespace tbdsim {
namespace {

using Runs = std::vector<RunError>;

constexpr std::size_t kLeast = 3;  // runs of a set that is shown

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

void write_components(const IntervalFit& found, const Runs& runs, std::ostream& out) {
  const VarianceFit& fit = found.variance;
  out << "effect             sd of ln(time)  in predictions\n";
  for (std::size_t e = 0; e < kEffectNames.size(); ++e) {
    out << fmt::format("{:<17}  {:>14.3f}  {:>14.3f}{}\n", kEffectNames[e], fit.components[e], kComponents[e],
                       fit.pooled[e] ? "  not estimated here" : "");
  }
  if (!fit.sets_of_one.empty())
    out << "sets of one run have no component of their own; the pooled one stands for them: "
        << joined(fit.sets_of_one) << '\n';
  if (!found.unexplained.empty())
    out << "left out, for their median error is that of a mechanism that is missing: "
        << joined(found.unexplained) << '\n';
  if (std::any_of(runs.begin(), runs.end(), std::mem_fn(&RunError::development)))
    out << fmt::format("deviations of development rows are {:.2f} times those of others\n",
                       found.of_development);
}

std::string percent_inside(const Effects& components, const Runs& runs) {
  return fmt::format("{:.0f} %", 100 * coverage_of(components, runs));
}

// "84 %" of a set's runs are within the interval that a fit to the others gives; "-" where there is no such
// fit, for they are too few or a component does not converge.
std::string left_out_share(const Runs& of_set, const Runs& others) {
  try {
    return percent_inside(fit_intervals(others).variance.components, of_set);
  } catch (const UsageError&) {
    return "-";
  }
}

// Share of each set's runs within the interval: with the components that predictions have, with the fitted
// ones and with those of a fit without the set. Sets of one or two runs, which it would show, are left out.
void write_coverage(const Runs& runs, const Effects& fitted, std::ostream& out) {
  out << "\nset                                   runs  in predictions  fitted  set left out\n";
  for (const std::string& set : sets_of(runs)) {
    const Runs of_set = those(runs, set, true), others = those(runs, set, false);
    if (of_set.size() < kLeast) continue;
    out << fmt::format("{:<36}  {:>4}  {:>14}  {:>6}  {:>12}\n", set, of_set.size(),
                       percent_inside(kComponents, of_set), percent_inside(fitted, of_set),
                       left_out_share(of_set, others));
  }
}

}  // namespace

void interval_fit_command(const IntervalFitCommand& command, const ProgramContext& context) {
  if (command.files.empty() && command.development.empty() && command.errors.empty())
    throw UsageError("fit-intervals: expected tables of runs");
  SpecCache specs(Catalog::from(context.data_dir));
  if (context.catch_signals != nullptr) context.catch_signals();
  std::size_t rows = 0;
  const auto progress = [&] {
    stop_if_interrupted(context);
    if (context.show_progress) context.err << "\r\033[Krow " << ++rows << std::flush;
  };
  RunErrors fit;
  const auto read = [&](const std::vector<std::string>& files, const RunSelection& selection) {
    for (const std::string& file : files) {
      std::ifstream in = open_input(file);
      add_run_errors(in, file, selection, specs, progress, fit);
    }
  };
  read(command.files, {.split = "fit"});
  read(command.development, {.split = "", .development = true});
  for (const std::string& file : command.errors) {
    std::ifstream in = open_input(file);
    read_run_errors(in, file, fit.runs);
  }
  if (context.show_progress) context.err << "\r\033[K";
  if (fit.runs.empty())
    throw UsageError("fit-intervals: no row to fit to; expected rows with use time and split fit");
  if (!command.rows.empty()) {
    AtomicFile file(command.rows);
    write_run_errors(file.stream(), fit.runs);
    file.commit();
  }
  context.out << fmt::format("{} configurations\n", fit.runs.size());
  for (const auto& [reason, count] : fit.not_covered)
    context.out << fmt::format("{} not covered: {}\n", count, reason);
  context.out << '\n';
  const IntervalFit found = fit_intervals(fit.runs);
  write_components(found, fit.runs, context.out);
  write_coverage(fit.runs, found.variance.components, context.out);
}

}  // namespace tbdsim
