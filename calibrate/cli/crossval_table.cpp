#include "calibrate/cli/crossval_table.h"

#include <map>
#include <tuple>

#include <fmt/format.h>

namespace tbdsim {
namespace {

// Family, data set, precision, protocol; then "", "phase" or "gpu" and which.
using Key = std::tuple<std::string, std::string, std::string, int, std::string, std::string>;

std::string precision_of(const Outcome& o) { return o.block.substr(o.block.find('/') + 1); }

// "owner/repository@revision" -> "repository".
std::string short_set(const std::string& set) {
  const std::size_t slash = set.find('/');
  const std::string tail = slash == std::string::npos ? set : set.substr(slash + 1);
  return tail.substr(0, tail.find('@'));
}

// "-" where a model does not apply: a constant share of the peak for kernels without arithmetic.
Cell percent(double share) {
  constexpr double kDoesNotApply = 10;
  if (share > kDoesNotApply) return none_cell();
  return bare_percent_cell(share);
}

// The geometric error of each GPU, averaged.
double mean_over_gpus(const std::vector<Outcome>& outcomes, double Outcome::*predicted) {
  std::map<std::string, std::vector<Outcome>> gpus;
  for (const Outcome& o : outcomes) gpus[o.gpu].push_back(o);
  double sum = 0;
  for (const auto& [gpu, of_gpu] : gpus) sum += summarize(of_gpu, predicted).geometric;
  return sum / static_cast<double>(gpus.size());
}

std::vector<Cell> row_of(const Key& key, const std::vector<Outcome>& outcomes) {
  const auto& [family, set, precision, protocol, sort, name] = key;
  const ErrorSummary summary = summarize(outcomes, &Outcome::residual);
  double inside = 0;
  for (const Outcome& o : outcomes) inside += o.inside ? 1 : 0;
  return {text_cell(family),
          {short_set(set), set},
          text_cell(precision),
          text_cell(kProtocolNames[static_cast<std::size_t>(protocol)]),
          {name, name},
          count_cell(summary.count),
          percent(mean_over_gpus(outcomes, &Outcome::residual)),
          percent(mean_over_gpus(outcomes, &Outcome::formula)),
          percent(mean_over_gpus(outcomes, &Outcome::roofline)),
          percent(mean_over_gpus(outcomes, &Outcome::constant)),
          percent(summary.median),
          percent(summary.p90),
          signed_bare_percent_cell(summary.bias),
          percent(inside / static_cast<double>(summary.count))};
}

}  // namespace

Table cross_validation_table(const std::vector<Outcome>& outcomes, bool details) {
  std::map<Key, std::vector<Outcome>> groups;
  for (const Outcome& o : outcomes) {
    const auto add = [&](const std::string& sort, const std::string& name) {
      groups[{std::string(o.family), o.set, precision_of(o), static_cast<int>(o.protocol), sort, name}]
          .push_back(o);
    };
    add("", "");
    if (!details) continue;
    add("gpu", o.gpu);
    add("phase", o.phase);
  }
  Table table;
  table.name = "errors";
  table.preface = {
      "errors in %: geometric, exp(mean |ln(predicted / measured)|) - 1, mean over the GPUs, of the formula",
      "with residuals of calls nearby, the formula alone, a roofline and a constant share of the peak on the",
      "same folds; median, 90th percentile, bias and share within the 80 % interval of the first", ""};
  table.columns = {
      {"family", "family"},           {"data_set", "data"},           {"precision", "prec."},
      {"left_out", "left out"},       {"group", details ? "of" : ""}, {"calls", "calls", true},
      {"error", "error", true},       {"formula", "formula", true},   {"roofline", "roofline", true},
      {"constant", "constant", true}, {"median", "median", true},     {"p90", "p90", true},
      {"bias", "bias", true},         {"coverage", "in 80 %", true}};
  for (const auto& [key, group] : groups) table.rows.push_back(row_of(key, group));
  return table;
}

}  // namespace tbdsim
