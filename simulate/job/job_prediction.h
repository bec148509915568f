// The step of a job: of the layout that was asked for, or of the fastest that fits.
#pragma once

#include <cmath>
#include <vector>

#include "simulate/job/interval.h"
#include "simulate/prediction/prediction.h"

namespace tbdsim {

struct JobPrediction {
  const ResolvedJob* job = nullptr;
  LayoutPrediction layout;
  Effects deviations{};

  [[nodiscard]] bool fits() const { return layout.most.device <= job->usable(); }
  // 80 % of measured values are expected within the predicted one divided and multiplied by this.
  [[nodiscard]] double factor() const { return std::exp(kEightyPercent * total_deviation(deviations)); }
  [[nodiscard]] Interval tokens_interval() const {
    return {layout.tokens_per_second / factor(), layout.tokens_per_second * factor()};
  }
};

// `job` outlives the result.
[[nodiscard]] JobPrediction with_interval(LayoutPrediction layout, const ResolvedJob& job);

// `table` is of the job's inputs. Without a layout all are searched; where none fits, the result is the one
// that lacks least. Throws UsageError where none is legal.
[[nodiscard]] JobPrediction predict_job(const ResolvedJob& job, PieceTable& table);

}  // namespace tbdsim
