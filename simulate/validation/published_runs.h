// The project's own measured runs: simulate/validation/runs/<source>.csv below the data directory, published
// figures with the place each was read from.
#pragma once

#include <filesystem>
#include <functional>
#include <vector>

#include "simulate/validation/validate_runs.h"

namespace tbdsim {

// Of tests/validation: the errors that validation last had, which tests hold it to.
inline constexpr std::string_view kExpectedErrors = "expected_errors.csv";

// Its tables in the order of their names. Throws UsageError where there are none.
[[nodiscard]] std::vector<std::filesystem::path> validation_set(const Catalog& catalog);

// As the other validate_runs(), over these files.
[[nodiscard]] Validation validate_runs(const std::vector<std::filesystem::path>& files, const std::string& by,
                                       const RowPredictor& predictor,
                                       const std::function<void(std::size_t rows)>& progress);

}  // namespace tbdsim
