// The paper's figures for any hardware, on one page: `tbd-sim report`.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "simulate/html_page.h"
#include "simulate/prediction.h"

namespace tbdsim {

// Each model on each framework in three ways; the vectors are equally long.
struct ReportData {
  std::vector<Prediction> predictions;  // at the batch asked for, or the largest power of two that fits
  std::vector<std::vector<Prediction>> growth;     // at batches of 1, 2, 4, ... as far as they fit
  std::vector<std::string> others;                 // GPUs to compare with
  std::vector<std::vector<Prediction>> on_others;  // for each of them at the same batch
  bool all_fit = true;  // none of `predictions` is of a smaller batch than asked for
};

// Predicts everything the page shows. Scenarios are of one GPU and precision, those of one model are
// neighbours; where they count tokens these grow instead of the batch. Throws as predict().
[[nodiscard]] ReportData report_data(std::span<const Scenario> scenarios, std::span<const std::string> others,
                                     Library& library);

// Its sections are a table in report.cpp: a further one is a function and a row.
[[nodiscard]] Page report_page(const ReportData& data, Library& library);

}  // namespace tbdsim
