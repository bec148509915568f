// The paper's figures for any hardware, on one page: `tbd-sim report`.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "simulate/analysis/scaling.h"
#include "simulate/analysis/sensitivity.h"
#include "simulate/analysis/whatif.h"
#include "simulate/prediction/prediction.h"
#include "simulate/report/html/page.h"
#include "simulate/workload/spec_cache.h"

namespace tbdsim {

// Each model on each framework in several ways; the vectors are equally long.
struct ReportData {
  std::vector<Prediction> predictions;  // at the batch asked for, or the largest power of two that fits
  std::vector<std::vector<Prediction>> growth;          // at batches of 1, 2, 4, ... as far as they fit
  std::vector<std::string> others;                      // GPUs to compare with
  std::vector<std::vector<Prediction>> on_others;       // for each of them at the same batch
  std::vector<std::vector<ScalingPoint>> scaling;       // on the clusters that can train it
  std::vector<std::vector<UpperBound>> bounds;          // with one limit gone
  std::vector<std::vector<Sensitivity>> sensitivities;  // where the scope has them
  bool all_fit = true;  // none of `predictions` is of a smaller batch than asked for
};

// One GPU and those of Figure 9 of the paper: two and four in a machine, two machines with one each over
// 1 Gbit/s Ethernet and 100 Gbit/s InfiniBand.
[[nodiscard]] std::vector<Cluster> paper_clusters();

struct ReportScope {
  std::vector<Cluster> clusters = paper_clusters();
  bool sensitivities = false;  // which take ten times as long as the rest
  bool fitting = true;         // batches that do not fit are lessened
};

// Predicts everything the page shows. Scenarios are of one GPU and precision, those of one model are
// neighbours; where they count tokens these grow instead of the batch. Throws as predict().
[[nodiscard]] ReportData report_data(std::span<const Scenario> scenarios, std::span<const std::string> others,
                                     SpecCache& specs, const ReportScope& scope = {});

// Its sections are a table in report.cpp: a further one is a function and a row.
[[nodiscard]] Page report_page(const ReportData& data, SpecCache& specs);

}  // namespace tbdsim
