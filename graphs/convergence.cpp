#include "graphs/convergence.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "hwspecs/base/other_names.h"
#include "hwspecs/base/spec_reader.h"

namespace tbdsim {
namespace {

constexpr std::string_view kSourcedKeys[] = {"epoch", "startup", "evaluation", "points", "law"};
constexpr double kMostBatch = 1e12;  // samples
constexpr double kMostEpochs = 1e6;
constexpr double kMostSamples = 1e15;  // of an epoch
constexpr std::int64_t kMostRuns = 1'000'000;
constexpr double kMostSpread = 2;

// Epochs, or under the other key so many samples.
double read_epochs(SpecMap& m, std::string_view key, std::string_view in_samples, double epoch) {
  if (const auto samples = m.find(in_samples)) return samples->number(1, kMostSamples) / epoch;
  return m.at(key).number(1 / kMostEpochs, kMostEpochs);
}

EvaluationSchedule read_evaluation(const SpecNode& node, double epoch) {
  EvaluationSchedule schedule;
  node.map([&](SpecMap& m) {
    schedule.every = read_epochs(m, "every", "every_samples", epoch);
    schedule.samples = m.at("samples").number(0, kMostSamples);
    if (const auto overhead = m.find("overhead")) schedule.overhead = overhead->quantity<Seconds>();
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
  if (points.empty() || points.front().batch == points.back().batch)
    node.fail("is of one batch; expected epochs at two batches or more");
  return points;
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
    convergence.points = read_points(m.at("points"), convergence.epoch);
    read_law(m.at("law"), convergence);
    convergence.sources = read_sources(m, kSourcedKeys);
  });
  return convergence;
}

std::string_view name_of(EpochsFrom from) {
  constexpr std::array<std::string_view, 3> kNames = {"law", "law, below measured batches",
                                                      "law, beyond measured batches"};
  return kNames[static_cast<std::size_t>(from)];
}

double EpochsToTarget::spread() const { return std::hypot(run_spread, law_spread); }

EpochsToTarget epochs_to_target(const Convergence& convergence, const ConvergenceLaw& law,
                                double global_batch) {
  EpochsToTarget result;
  result.epochs = quantised(law.epochs_at(global_batch), convergence.evaluation);
  result.run_spread = pooled_spread(convergence.points);
  result.law_spread = convergence.law_spread;
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
  return epochs_to_target(convergence, convergence.law, global_batch);
}

}  // namespace tbdsim
