// How far off predictions for a GPU are if nothing had been measured on it: neither its kernels, so that the
// profile is that of other GPUs (calibrate/profiles/holdout/), nor training runs that set a framework's
// constants (simulate/frameworks/holdout/<framework>_without_<gpu>.yaml, fitted to the other GPUs' runs).
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "simulate/validation/validate_runs.h"

namespace tbdsim {

// Measurements that a prediction for the GPU may use:
//   full       all that were made on it
//   one_gemm   one large matrix product, beside the data sheet
//   datasheet  none
enum class CalibrationLevel { full, one_gemm, datasheet };

// The scenario with the held-out profile and framework in place of the GPU's own. A GPU without measurements
// keeps its scenario.
[[nodiscard]] Scenario hold_out(Scenario scenario, const Catalog& catalog, CalibrationLevel level);

struct HoldoutErrors {
  GroupErrors measured;
  std::optional<GroupErrors> one_product;  // none where no product was measured on the group's GPUs
  GroupErrors data_sheet;
};

// Errors of times on one GPU, by section and group; of runs on one GPU of that name, or of any with `gpu`
// empty.
[[nodiscard]] std::vector<HoldoutErrors> holdout_errors(
    const std::vector<std::filesystem::path>& runs, const std::string& gpu, const std::string& by,
    const Resolver& resolve, const std::function<void(std::size_t rows)>& progress);

}  // namespace tbdsim
