// How accurate a fit of a framework's constants is: errors on runs that it did and did not see.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "calibrate/framework_fit/framework_fit.h"

namespace tbdsim {

// Mean |predicted / measured - 1| over rows.
struct RowErrors {
  std::size_t rows = 0;
  double before = 0;  // with the framework as it is
  double after = 0;   // with the fitted constants
};

// Errors of a fit. An optional part is missing where no rows are left to fit to, or to predict.
struct FitErrors {
  RowErrors fit;                            // rows that the constants were fitted to
  double with_gpus = 0;                     // mean error of these after the fit, with the factor of each GPU
  std::optional<RowErrors> left_out_model;  // each model's rows, after a fit to the other models' rows
  std::optional<RowErrors> left_out_gpu;    // each GPU's rows, after a fit to the other GPUs' rows
  std::optional<RowErrors> left_out_set;    // each set's rows, after a fit to the other sets' rows
  std::optional<RowErrors> large_batch;     // rows of batch 16 and more, after a fit to those of 4 and less
  std::optional<RowErrors> score;           // rows that no fit uses
};

inline constexpr std::int64_t kSmallBatch = 4, kLargeBatch = 16;

[[nodiscard]] RowsToFit pointers_to(const std::vector<RunRow>& rows);

[[nodiscard]] FitErrors errors_of(const Framework& framework, const FrameworkFit& fit, const RunRows& rows,
                                  const std::function<void()>& progress);

}  // namespace tbdsim
