// The page of `tbd-sim plan --html`, and its sections, which `serve` shows too: stages over time, parts of
// the step, communication by dimension, memory by rank, the front of time against memory.
#pragma once

#include <vector>

#include "simulate/job/job_prediction.h"
#include "simulate/report/html/page.h"

namespace tbdsim {

struct PlanPageData {
  const ResolvedJob* job = nullptr;
  Plan plan{};                       // empty where the layout was given
  JobPrediction shown{};             // the layout in detail
  std::vector<RankMemory> memory{};  // of its stages
};

[[nodiscard]] std::vector<Section> plan_sections(const PlanPageData& data);
[[nodiscard]] Page plan_page(const PlanPageData& data);

}  // namespace tbdsim
