#include "simulate/validation/observations.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <tuple>

#include <fmt/format.h>

#include "hwspecs/base/error.h"
#include "hwspecs/base/suggest.h"
#include "simulate/analysis/kernel_groups.h"
#include "simulate/prediction/metrics.h"
#include "simulate/prediction/predict_all.h"
#include "simulate/prediction/time_to_target.h"

namespace tbdsim {
namespace {

constexpr std::size_t kLongestKernels = 5;  // of the paper's Tables V and VI

// A quantity of a prediction, with its unit as metrics have it.
struct Quantity {
  std::string unit;
  std::function<std::optional<double>(const Prediction&)> value;
};

std::optional<double> feature_map_share(const Prediction& p) {
  return p.memory.use[MemoryCategory::feature_maps] / p.memory.model();
}

std::optional<double> below_average_batch_norms(const Prediction& p) {
  double share = 0;
  for (const KernelGroup& group : below_average(p, KernelView::kernel, kLongestKernels)) {
    if (group.name.find("bn_") != std::string::npos) share += group.share;
  }
  return share;
}

// Standard deviation of ln(time to the target) from run to run.
std::optional<double> run_variation(const Prediction& p) {
  const auto time = time_to_target(p);
  return time ? std::optional(time->epochs.run_spread) : std::nullopt;
}

// The part of the time to the target that the run does not train: evaluations.
std::optional<double> evaluation_share(const Prediction& p) {
  const auto time = time_to_target(p, {.startup = false, .checkpoints = false});
  return time ? std::optional(time->evaluation / time->total()) : std::nullopt;
}

struct OwnQuantity {
  std::string_view name;
  std::optional<double> (*value)(const Prediction&);  // a ratio
};
constexpr OwnQuantity kOwnQuantities[] = {{"feature_map_share", feature_map_share},
                                          {"below_average_batch_norms", below_average_batch_norms},
                                          {"run_variation", run_variation},
                                          {"evaluation_share", evaluation_share}};

Quantity find_quantity(const std::string& name) {
  std::vector<std::string> names;
  for (const OwnQuantity& own : kOwnQuantities) {
    if (own.name == name) return {std::string(kRatio), own.value};
    names.emplace_back(own.name);
  }
  for (const Metric& metric : metrics()) {
    if (metric.name == name) return {std::string(metric.unit), metric.value};
    names.emplace_back(metric.name);
  }
  throw UsageError("unknown metric " + in_quotes(name) + did_you_mean(name, names));
}

// All predictions by GPU, case and batch.
using Key = std::tuple<std::string, std::string, std::int64_t>;
using Predictions = std::map<Key, Prediction>;

Predictions predict_cases(const Observations& observations, const Resolver& resolve) {
  std::vector<Key> keys;
  std::vector<Scenario> scenarios;
  for (const std::string& gpu : {observations.gpu, observations.other_gpu}) {
    for (const auto& [name, observed] : observations.cases) {
      // Machines hold observations.gpu only, and some cases are of one GPU.
      if (gpu != observations.gpu && (observed.cluster.ranks() > 1 || !observed.gpu.empty())) continue;
      for (const std::int64_t batch : observed.batches) {
        keys.emplace_back(gpu, name, batch);
        Scenario& scenario = scenarios.emplace_back();
        scenario.model = observed.model;
        scenario.framework = observed.framework;
        scenario.gpu = observed.gpu.empty() ? gpu : observed.gpu;
        scenario.batch = observed.in_tokens ? 1 : batch;
        scenario.tokens = observed.in_tokens ? batch : 0;
        scenario.variant = observed.variant;
        scenario.precision = observed.precision;
        scenario.target = observed.target;
        scenario.cluster = observed.cluster;
      }
    }
  }
  std::vector<Prediction> predicted = predict_all(scenarios, resolve);
  Predictions predictions;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (predicted[i].fits) predictions[keys[i]] = std::move(predicted[i]);
  }
  return predictions;
}

// Evaluates one check over its cases.
class CheckEvaluator {
 public:
  CheckEvaluator(const Observations& observations, const Predictions& predictions, const Check& check)
      : observations_(observations),
        predictions_(predictions),
        check_(check),
        quantity_(find_quantity(check.metric)) {}

  [[nodiscard]] CheckResult result() const {
    CheckResult result;
    result.check = &check_;
    if (check_.over == Baseline::nothing) result.unit = quantity_.unit;
    std::size_t within = 0;
    for (const std::string& name : check_.of) {
      if (const auto evidence = evidence_of(name)) {
        result.evidence.push_back(*evidence);
        within += evidence->holds;
      }
    }
    if (result.evidence.empty()) return result;
    const double share = static_cast<double>(within) / static_cast<double>(result.evidence.size());
    const bool holds = check_.needed < 1 ? share > check_.needed : within == result.evidence.size();
    result.verdict = holds ? Verdict::holds : Verdict::does_not_hold;
    return result;
  }

 private:
  [[nodiscard]] const ObservedCase& observed(const std::string& name) const {
    return observations_.cases.at(name);
  }

  [[nodiscard]] std::optional<double> value(const std::string& gpu, const std::string& name,
                                            std::int64_t batch) const {
    const auto found = predictions_.find({gpu, name, batch});
    return found == predictions_.end() ? std::nullopt : quantity_.value(found->second);
  }

  // The batches that fit, on the other GPU too where both are looked at.
  [[nodiscard]] std::vector<std::int64_t> batches(const std::string& name) const {
    std::vector<std::int64_t> fitting;
    for (const std::int64_t batch : observed(name).batches) {
      if (check_.at && batch != *check_.at) continue;
      if (!value(observations_.gpu, name, batch)) continue;
      if (check_.over == Baseline::gpu && !value(observations_.other_gpu, name, batch)) continue;
      fitting.push_back(batch);
    }
    return fitting;
  }

  [[nodiscard]] std::string at(const std::string& name, std::int64_t batch) const {
    return fmt::format("{}, {} {}", name, observed(name).in_tokens ? "tokens" : "batch", batch);
  }

  [[nodiscard]] Evidence judged(const std::string& subject, double value) const {
    return {subject, value,
            (!check_.at_least || value >= *check_.at_least) && (!check_.at_most || value <= *check_.at_most)};
  }

  // By how much a ratio is beyond its limits; below 0 inside.
  [[nodiscard]] double beyond(double value) const {
    return std::max(check_.at_least ? *check_.at_least - value : -HUGE_VAL,
                    check_.at_most ? value - *check_.at_most : -HUGE_VAL);
  }

  [[nodiscard]] Evidence over_batch(const std::string& name, const std::vector<std::int64_t>& fitting,
                                    std::size_t i) const {
    const double ratio =
        *value(observations_.gpu, name, fitting[i]) / *value(observations_.gpu, name, fitting[i - 1]);
    return judged(fmt::format("{} over {}", at(name, fitting[i]), fitting[i - 1]), ratio);
  }

  [[nodiscard]] std::optional<Evidence> over_batches(const std::string& name,
                                                     const std::vector<std::int64_t>& fitting) const {
    if (fitting.size() < 2) return std::nullopt;
    std::optional<Evidence> worst;
    for (std::size_t i = check_.over == Baseline::batch ? 1 : fitting.size() - 1; i < fitting.size(); ++i) {
      Evidence evidence = over_batch(name, fitting, i);
      if (!worst || beyond(evidence.value) > beyond(worst->value)) worst = std::move(evidence);
    }
    return worst;
  }

  // Over the lowest of other cases, each at its own largest batch.
  [[nodiscard]] std::optional<Evidence> over_cases(const std::string& subject, double own) const {
    std::optional<std::pair<double, std::string>> lowest;
    for (const std::string& name : check_.over_cases) {
      const std::vector<std::int64_t> fitting = batches(name);
      if (fitting.empty()) continue;
      const double other = *value(observations_.gpu, name, fitting.back());
      if (!lowest || other < lowest->first) lowest = {other, at(name, fitting.back())};
    }
    if (!lowest) return std::nullopt;
    return judged(subject + " over " + lowest->second, own / lowest->first);
  }

  [[nodiscard]] std::optional<Evidence> evidence_of(const std::string& name) const {
    const std::vector<std::int64_t> fitting = batches(name);
    if (fitting.empty()) return std::nullopt;
    if (check_.over == Baseline::batch || check_.over == Baseline::last_batch)
      return over_batches(name, fitting);
    const double own = *value(observations_.gpu, name, fitting.back());
    const std::string subject = at(name, fitting.back());
    switch (check_.over) {
      case Baseline::gpu:
        return judged(subject, *value(observations_.other_gpu, name, fitting.back()) / own);
      case Baseline::cases:
        return over_cases(subject, own);
      default:
        return judged(subject, own);
    }
  }

  const Observations& observations_;
  const Predictions& predictions_;
  const Check& check_;
  Quantity quantity_;
};

Verdict verdict_of(const std::vector<CheckResult>& checks) {
  Verdict verdict = checks.empty() ? Verdict::not_decidable : Verdict::holds;
  for (const CheckResult& check : checks) {
    if (check.verdict == Verdict::does_not_hold) return Verdict::does_not_hold;
    if (check.verdict == Verdict::not_decidable) verdict = Verdict::not_decidable;
  }
  return verdict;
}

}  // namespace

std::string_view name_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::holds:
      return "holds";
    case Verdict::does_not_hold:
      return "does not hold";
    case Verdict::not_decidable:
      return "not decidable";
  }
  return "";
}

std::vector<ObservationResult> observe(const Observations& observations, const Resolver& resolve) {
  const Predictions predictions = predict_cases(observations, resolve);
  std::vector<ObservationResult> results;
  for (const Observation& observation : observations.observations) {
    ObservationResult& result = results.emplace_back();
    result.observation = &observation;
    for (const Check& check : observation.checks)
      result.checks.push_back(CheckEvaluator(observations, predictions, check).result());
    result.verdict = verdict_of(result.checks);
  }
  return results;
}

}  // namespace tbdsim
