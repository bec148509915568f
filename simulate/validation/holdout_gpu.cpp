#include "simulate/validation/holdout_gpu.h"

#include <algorithm>
#include <array>

#include "hwspecs/base/error.h"
#include "simulate/prediction/predict.h"
#include "simulate/validation/published_runs.h"

namespace tbdsim {
namespace {

constexpr std::string_view kLeftOut = "left out";

std::string profile_name(const std::string& gpu, CalibrationLevel level) {
  return level == CalibrationLevel::one_gemm ? gpu + "_one_gemm" : gpu;
}

// The prediction for a row that is a time on one GPU `gpu` (any, if empty) with a profile of that level;
// others are left out.
RowPrediction predict_unseen(const RunColumns& columns, std::span<const std::string> row,
                             const std::string& gpu, CalibrationLevel level, const Resolver& resolve) {
  const bool several = row[columns.gpus] != "1" || row[columns.machines] != "1";
  const bool other = !gpu.empty() && row[columns.gpu] != gpu;
  const bool unknown = level == CalibrationLevel::one_gemm &&
                       !resolve.catalog().unseen(Kind::profile, profile_name(row[columns.gpu], level));
  if (several || other || unknown || row[columns.metric] == "memory_used")
    return {std::string(kLeftOut), 0, {}};
  const RowPrediction measured = predict_row(columns, row, resolve, "");
  if (!measured.ok() || level == CalibrationLevel::full) return measured;
  // The held-out profile must cover the row, too.
  const Scenario scenario = hold_out(scenario_of(columns, row, resolve), resolve.catalog(), level);
  return predicted_value(columns, row, predict(scenario, resolve), resolve);
}

}  // namespace

Scenario hold_out(Scenario scenario, const Catalog& catalog, CalibrationLevel level) {
  if (level == CalibrationLevel::full) return scenario;
  if (const auto profile = catalog.unseen(Kind::profile, profile_name(scenario.gpu, level)))
    scenario.profile = profile->string();
  if (const auto framework = catalog.unseen(Kind::framework, scenario.framework + "_without_" + scenario.gpu))
    scenario.framework = framework->string();
  return scenario;
}

std::vector<HoldoutErrors> holdout_errors(const std::vector<std::filesystem::path>& runs,
                                          const std::string& gpu, const std::string& by,
                                          const Resolver& resolve,
                                          const std::function<void(std::size_t)>& progress) {
  std::array<std::vector<GroupErrors>, 3> groups;
  for (const CalibrationLevel level :
       {CalibrationLevel::full, CalibrationLevel::one_gemm, CalibrationLevel::datasheet}) {
    const RowPredictor predictor = [&](const RunColumns& columns, std::span<const std::string> row) {
      return predict_unseen(columns, row, gpu, level, resolve);
    };
    groups[static_cast<std::size_t>(level)] = validate_runs(runs, by, predictor, progress).groups;
  }
  // Every level has the same rows in the same groups.
  std::vector<HoldoutErrors> errors;
  for (std::size_t g = 0; g < groups[0].size(); ++g) {
    if (groups[0][g].configurations == 0) continue;
    HoldoutErrors& e = errors.emplace_back(HoldoutErrors{groups[0][g], std::nullopt, groups[2][g]});
    if (groups[1][g].configurations == e.measured.configurations) e.one_product = groups[1][g];
  }
  return errors;
}

}  // namespace tbdsim
