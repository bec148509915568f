#include "graphs/convergence.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "hwspecs/base/error.h"
#include "hwspecs/base/other_names.h"
#include "hwspecs/base/spec_reader.h"

namespace tbdsim {
namespace {

constexpr std::string_view kSourcedKeys[] = {"epoch",   "startup", "evaluation", "points",  "law",
                                             "between", "phases",  "curve",      "measured"};
constexpr double kMostBatch = 1e12;    // samples
constexpr double kMostSamples = 1e15;  // of an epoch
constexpr std::int64_t kMostRuns = 1'000'000;
constexpr double kMostSpread = 2;
constexpr double kLeastPhaseBatch = 0.01, kMostPhaseBatch = 100;  // over the run's
constexpr std::int64_t kMostSize = 1'000'000;
constexpr double kMostQuality = 1e6;
constexpr double kMostHours = 1e6;

// Epochs, or under the other key so many samples; without either of them `missing`, if there is one.
double read_epochs(SpecMap& m, std::string_view key, std::string_view in_samples, double epoch,
                   std::optional<double> missing = std::nullopt) {
  if (const auto samples = m.find(in_samples)) return samples->number(1, kMostSamples) / epoch;
  if (const auto epochs = m.find(key)) return epochs->number(1 / kMostEpochs, kMostEpochs);
  return missing ? *missing : m.at(key).number(1 / kMostEpochs, kMostEpochs);
}

EvaluationSchedule read_evaluation(const SpecNode& node, double epoch) {
  EvaluationSchedule schedule;
  node.map([&](SpecMap& m) {
    schedule.every = read_epochs(m, "every", "every_samples", epoch);
    schedule.first = read_epochs(m, "first", "first_samples", epoch, schedule.every);
    schedule.samples = m.at("samples").number(0, kMostSamples);
    if (const auto overhead = m.find("overhead")) schedule.overhead = overhead->quantity<Seconds>();
    if (const auto each = m.find("per_sample")) schedule.per_sample = each->quantity<Seconds>();
    if (const auto overlaps = m.find("overlaps")) schedule.overlaps = overlaps->flag();
    if (const auto exact = m.find("exact")) schedule.exact = exact->flag();
  });
  return schedule;
}

std::vector<ConvergencePoint> read_points(const SpecNode& node, double epoch) {
  std::vector<ConvergencePoint> points;
  for (const SpecNode& item : node.list()) {
    item.map([&](SpecMap& m) {
      ConvergencePoint point;
      const SpecNode batch = m.at("batch");
      point.batch = batch.number(1, kMostBatch);
      if (!points.empty() && point.batch < points.back().batch)
        batch.fail("is less than the one before; expected ascending batches");
      point.epochs = read_epochs(m, "epochs", "samples", epoch);
      point.spread = m.at("spread").number(0, kMostSpread);
      point.runs = static_cast<int>(m.at("runs").count(1, kMostRuns));
      if (const auto source = m.find("source")) point.source = source->text();
      points.push_back(std::move(point));
    });
  }
  if (points.empty()) node.fail("is empty; expected epochs at a batch or more");
  return points;
}

// Phases as `{epochs: 18, sizes: {image_size: 128}, batch: 2}`; without the key one of the network's own
// sizes.
std::vector<TrainingPhase> read_phases(const std::optional<SpecNode>& node) {
  if (!node) return {TrainingPhase{}};
  std::vector<TrainingPhase> phases;
  double epochs = 0;
  for (const SpecNode& item : node->list()) {
    item.map([&](SpecMap& m) {
      TrainingPhase& phase = phases.emplace_back();
      phase.share = m.at("epochs").number(1 / kMostEpochs, kMostEpochs);
      epochs += phase.share;
      if (const auto batch = m.find("batch")) phase.batch = batch->number(kLeastPhaseBatch, kMostPhaseBatch);
      if (const auto sizes = m.find("sizes")) {
        sizes->map([&](SpecMap& named) {
          for (const auto& size : named.all()) phase.sizes[size.name] = size.node.count(1, kMostSize);
        });
      }
    });
  }
  if (phases.empty()) node->fail("is empty; expected a phase or more");
  for (TrainingPhase& phase : phases) phase.share /= epochs;
  return phases;
}

// A list of pairs [where, quality], the first of each ascending.
std::vector<CurvePoint> read_curve(const SpecNode& node, double most) {
  std::vector<CurvePoint> points;
  for (const SpecNode& item : node.list()) {
    const std::vector<SpecNode> pair = item.list();
    if (pair.size() != 2) item.fail("is no pair; expected [where, quality]");
    points.push_back({pair[0].number(0, most), pair[1].number(0, kMostQuality)});
    if (points.size() > 1 && points.back().at <= points[points.size() - 2].at)
      pair[0].fail("is no more than the one before; expected ascending numbers");
  }
  return points;
}

std::vector<MeasuredCurve> read_measured(const SpecNode& node) {
  std::vector<MeasuredCurve> curves;
  for (const SpecNode& item : node.list()) {
    item.map([&](SpecMap& m) {
      MeasuredCurve& curve = curves.emplace_back();
      curve.title = m.at("title").text();
      curve.gpu = m.at("gpu").text();
      curve.gpus = m.at("gpus").count(1, kMostRuns);
      curve.points = read_curve(m.at("points"), kMostHours);
    });
  }
  return curves;
}

void read_law(const SpecNode& node, Convergence& convergence) {
  node.map([&](SpecMap& m) {
    convergence.law = {.minimum = m.at("minimum").number(1 / kMostEpochs, kMostEpochs),
                       .critical_batch = m.at("critical_batch").number(1 / kMostBatch, kMostBatch),
                       .exponent = m.at("exponent").number(kLeastExponent, kLargestExponent)};
    convergence.law_spread = m.at("spread").number(0, kMostSpread);
  });
}

// Root mean square of the points' spreads, weighted by their runs.
double pooled_spread(std::span<const ConvergencePoint> points) {
  double squares = 0, runs = 0;
  for (const ConvergencePoint& point : points) {
    squares += point.runs * point.spread * point.spread;
    runs += point.runs;
  }
  return std::sqrt(squares / runs);
}

double quantised(double epochs, const EvaluationSchedule& schedule) {
  return schedule.exact ? schedule.every * std::max(1.0, std::round(epochs / schedule.every)) : epochs;
}

}  // namespace

double EvaluationSchedule::within(double epochs) const {
  constexpr double kRounding = 1e-6;  // 35 epochs of 5 are seven evaluations
  return 1 + std::max(0.0, std::ceil((epochs - first) / every - kRounding));
}

bool Convergence::is_called(const std::string& called) const {
  const std::string plain = plain_name(called);
  if (plain == plain_name(name) || plain == plain_name(target)) return true;
  return std::any_of(also_called.begin(), also_called.end(),
                     [&](const std::string& other) { return plain == plain_name(other); });
}

Convergence read_convergence(const std::filesystem::path& file) {
  const SpecTree tree = read_spec_file(file);
  Convergence convergence;
  convergence.name = file.stem().string();
  SpecNode(tree).map([&](SpecMap& m) {
    convergence.title = m.at("title").text();
    convergence.model = m.at("model").text();
    convergence.target = m.at("target").text();
    convergence.also_called = m.texts("also_called");
    if (const auto usual = m.find("usual")) convergence.usual = usual->flag();
    convergence.optimizer = m.at("optimizer").text();
    convergence.epoch = m.at("epoch").number(1, kMostSamples);
    if (const auto startup = m.find("startup")) convergence.startup = startup->quantity<Seconds>();
    convergence.evaluation = read_evaluation(m.at("evaluation"), convergence.epoch);
    if (const auto points = m.find("points")) {
      convergence.points = read_points(*points, convergence.epoch);
      read_law(m.at("law"), convergence);
    }
    if (const auto between = m.find("between")) convergence.between_spread = between->number(0, kMostSpread);
    convergence.phases = read_phases(m.find("phases"));
    if (const auto curve = m.find("curve")) convergence.curve = read_curve(*curve, 1);
    if (const auto measured = m.find("measured")) convergence.measured = read_measured(*measured);
    convergence.sources = read_sources(m, kSourcedKeys);
  });
  return convergence;
}

std::string_view name_of(EpochsFrom from) {
  constexpr std::array<std::string_view, 4> kNames = {"law", "law, below measured batches",
                                                      "law, beyond measured batches", "given"};
  return kNames[static_cast<std::size_t>(from)];
}

bool is_outside(EpochsFrom from) { return from == EpochsFrom::below || from == EpochsFrom::beyond; }

double EpochsToTarget::spread(int runs) const {
  return std::hypot(run_spread / std::sqrt(static_cast<double>(runs)), law_spread, between_spread);
}

EpochsToTarget epochs_to_target(const Convergence& convergence, const ConvergenceLaw& law,
                                std::span<const ConvergencePoint> points, double global_batch) {
  EpochsToTarget result;
  result.epochs =
      quantised(epochs_near(law, points, convergence.evaluation.every, global_batch), convergence.evaluation);
  result.run_spread = pooled_spread(convergence.points);
  result.law_spread = convergence.law_spread;
  result.between_spread = convergence.between_spread;
  const double least = convergence.points.front().batch;
  double outside = 1;
  if (global_batch < least) {
    result.from = EpochsFrom::below;
    outside = least / global_batch;
  } else if (global_batch > convergence.largest_batch()) {
    result.from = EpochsFrom::beyond;
    outside = global_batch / convergence.largest_batch();
  }
  result.law_spread = std::hypot(result.law_spread, kOutsideSpread * std::log(outside));
  return result;
}

EpochsToTarget epochs_to_target(const Convergence& convergence, double global_batch) {
  if (convergence.given_epochs > 0) return {.epochs = convergence.given_epochs, .from = EpochsFrom::given};
  if (!convergence.is_measured()) {
    throw UsageError("no run of " + convergence.model + " to " + convergence.target +
                     " is known, and so no epochs; expected --epochs N, those that a run takes at its batch");
  }
  return epochs_to_target(convergence, convergence.law, convergence.points, global_batch);
}

}  // namespace tbdsim
