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
#include "simulate/workload/spec_cache.h"

namespace tbdsim {

// What is known of the GPU: all that was measured on it; its data sheet and one large matrix product; its
// data sheet.
enum class CalibrationLevel { measured, one_product, data_sheet };

// The scenario with what stands in for the GPU's profile and the framework. Where nothing was measured on the
// GPU its scenario stays as it is.
[[nodiscard]] Scenario hold_out(Scenario scenario, const Catalog& catalog, CalibrationLevel knowledge);

struct HoldoutErrors {
  GroupErrors measured;
  std::optional<GroupErrors> one_product;  // none where no product was measured on the group's GPUs
  GroupErrors data_sheet;
};

// Errors of times on one GPU, by section and group; of runs on one GPU of that name, or of any with `gpu`
// empty.
[[nodiscard]] std::vector<HoldoutErrors> holdout_errors(
    const std::vector<std::filesystem::path>& runs, const std::string& gpu, const std::string& by,
    SpecCache& specs, const std::function<void(std::size_t rows)>& progress);

}  // namespace tbdsim
