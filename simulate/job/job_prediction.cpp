#include "simulate/job/job_prediction.h"

#include <utility>

namespace tbdsim {

JobPrediction with_interval(LayoutPrediction layout, const ResolvedJob& job) {
  const Effects deviations = deviations_of(layout, job);
  return {.job = &job, .layout = std::move(layout), .deviations = deviations};
}

JobPrediction predict_job(const ResolvedJob& job, PieceTable& table) {
  if (job.layout) return with_interval(predict_layout(*job.layout, table, job.peak), job);
  Plan plan = best_layouts(layouts_of(job), job.inputs, job.peak, job.usable(), 1);
  return with_interval(std::move(plan.best.empty() ? plan.smallest.at(0) : plan.best[0]), job);
}

}  // namespace tbdsim
