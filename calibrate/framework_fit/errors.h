// What a fit of a framework's constants is worth: errors on runs that it did and did not see.
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
  double after = 0;   // with constants fitted to the rows that are meant
};

// Errors on rows that the constants were not fitted to; none where there is nothing left to fit to.
struct FitErrors {
  RowErrors fit;                            // the very rows they were fitted to
  double with_gpus = 0;                     // of them, after the fit, with the factor of each GPU
  std::optional<RowErrors> left_out_model;  // each model's rows, of a fit to those of the others
  std::optional<RowErrors> left_out_gpu;
  std::optional<RowErrors> large_batch;  // rows of batch 16 and above, of a fit to those of 4 and below
  std::optional<RowErrors> score;        // no fit has seen them
};

inline constexpr std::int64_t kSmallBatch = 4, kLargeBatch = 16;

[[nodiscard]] RowsToFit pointers_to(const std::vector<RunRow>& rows);

[[nodiscard]] FitErrors errors_of(const Framework& framework, const FrameworkFit& fit, const RunRows& rows,
                                  const std::function<void()>& progress);

}  // namespace tbdsim
