// The measured runs that predictions are farthest from, predicted again with their kernels.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "simulate/validation/validate_runs.h"

namespace tbdsim {

struct FarthestRun {
  const Configuration* configuration = nullptr;  // one of the validation's
  std::optional<Prediction> prediction;          // none if its row describes no scenario
};

// The ten configurations of section "score" with the largest |ln(predicted / measured)|, the largest first.
// `profile`: empty for each GPU's own. `validation` must outlive them.
[[nodiscard]] std::vector<FarthestRun> farthest_runs(const Validation& validation, const std::string& profile,
                                                     const Resolver& resolve);

}  // namespace tbdsim
