// The predictions and analyses that the page of `tbd-sim report` shows.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "simulate/analysis/scaling.h"
#include "simulate/analysis/sensitivity.h"
#include "simulate/analysis/target_runs.h"
#include "simulate/analysis/whatif.h"
#include "simulate/prediction/prediction.h"
#include "simulate/prediction/resolve.h"

namespace tbdsim {

// Predictions of every scenario (a model on a framework). Vectors but `others` and `on_others` have an
// element for each scenario.
struct ReportData {
  std::vector<Prediction> predictions;  // at the scenario's batch, or the largest power of two that fits
  std::vector<std::vector<Prediction>> growth;     // at the batches 1, 2, 4, ... that fit
  std::vector<std::string> others;                 // names of GPUs to compare with
  std::vector<std::vector<Prediction>> on_others;  // for each of `others`, every scenario at the same batch
  std::vector<std::vector<ScalingPoint>> scaling;  // on the clusters that the framework can use
  std::vector<std::vector<UpperBound>> bounds;     // throughput with one limit removed
  std::vector<std::vector<Sensitivity>> sensitivities;  // empty unless the scope includes them
  // Predictions of scenarios with a target (empty without): on one to eight GPUs and on machines of eight,
  // each at its best batch; and on eight GPUs at the batches that fit.
  std::vector<std::vector<TargetRun>> to_target, to_target_by_batch;
  bool all_fit = true;  // every prediction has the scenario's batch
};

// One GPU, and the clusters of the paper's Figure 9: two and four GPUs in a machine, two machines with one
// GPU each over 1 Gbit/s Ethernet and over 100 Gbit/s InfiniBand.
[[nodiscard]] std::vector<Cluster> paper_clusters();

struct ReportScope {
  std::vector<Cluster> clusters = paper_clusters();
  bool sensitivities = false;  // take ten times as long as the rest
  bool fitting = true;         // replaces a batch that does not fit by the largest power of two that does
};

// Predicts everything that the page shows. All scenarios have one GPU and one precision, and those of one
// model stand together. In `growth` a scenario that gives tokens has more tokens instead of a larger batch.
// Throws as predict().
[[nodiscard]] ReportData report_data(std::span<const Scenario> scenarios, std::span<const std::string> others,
                                     const Resolver& resolve, const ReportScope& scope = {});

// "resnet50, mxnet".
[[nodiscard]] std::string title_of(const Prediction& prediction);

// Palette index of the prediction's framework, one on all charts of a page.
[[nodiscard]] int colour_of(const ReportData& data, const Prediction& prediction);

// The predictions of one model: [first, last) of ReportData::predictions.
struct ModelRange {
  std::size_t first, last;
};
[[nodiscard]] std::vector<ModelRange> models_of(const ReportData& data);

}  // namespace tbdsim
