// The project's own measured runs: simulate/validation/runs/<source>.csv below the data directory, published
// figures with the place each was read from.
#pragma once

#include <filesystem>
#include <functional>
#include <vector>

#include "simulate/validation/validate_runs.h"

namespace tbdsim {

// A table in tests/validation: the errors that tests hold the validation to.
inline constexpr std::string_view kExpectedErrors = "expected_errors.csv";

// Its tables in the order of their names. Throws UsageError where there are none.
[[nodiscard]] std::vector<std::filesystem::path> validation_set(const Catalog& catalog);

// The errors over these files; see validate_runs.h.
[[nodiscard]] Validation validate_runs(const std::vector<std::filesystem::path>& files, const std::string& by,
                                       std::span<const KnownFault> faults, const RowPredictor& predictor,
                                       const std::function<void(std::size_t rows)>& progress);

}  // namespace tbdsim
