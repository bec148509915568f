#include "simulate/validation/holdout_gpu.h"

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
  const Catalog& catalog = resolve.catalog();
  const std::string& gpu_of_row = row[columns.gpu];
  const bool several = row[columns.gpus] != "1" || row[columns.machines] != "1";
  const bool other = !gpu.empty() && gpu_of_row != gpu;
  const bool no_gemm =
      level == CalibrationLevel::one_gemm && !catalog.unseen(Kind::profile, profile_name(gpu_of_row, level));
  const bool no_time = row[columns.metric] == "memory_used";
  if (several || other || no_gemm || no_time) return {std::string(kLeftOut), 0, {}};
  const RowPrediction measured = predict_row(columns, row, resolve, "");
  if (!measured.ok() || level == CalibrationLevel::full) return measured;
  // The held-out profile must cover the row, too.
  const Scenario scenario = hold_out(scenario_of(columns, row, resolve), catalog, level);
  return predicted_value(columns, row, predict(scenario, resolve), resolve);
}

}  // namespace

Scenario hold_out(Scenario scenario, const Catalog& catalog, CalibrationLevel level) {
  if (level == CalibrationLevel::full) return scenario;
  const std::string without_gpu = scenario.framework + "_without_" + scenario.gpu;
  const auto profile = catalog.unseen(Kind::profile, profile_name(scenario.gpu, level));
  const auto framework = catalog.unseen(Kind::framework, without_gpu);
  if (profile) scenario.profile = profile->string();
  if (framework) scenario.framework = framework->string();
  return scenario;
}

std::vector<HoldoutErrors> holdout_errors(const std::vector<std::filesystem::path>& runs,
                                          const std::string& gpu, const std::string& by,
                                          const Resolver& resolve,
                                          const std::function<void(std::size_t)>& progress) {
  const std::vector<KnownFault> faults = known_faults(resolve.catalog());
  const auto errors_at = [&](CalibrationLevel level) {
    const RowPredictor predictor = [&](const RunColumns& columns, std::span<const std::string> row) {
      return predict_unseen(columns, row, gpu, level, resolve);
    };
    return validate_runs(runs, by, faults, predictor, progress).groups;
  };
  const std::vector<GroupErrors> full = errors_at(CalibrationLevel::full);
  const std::vector<GroupErrors> one_gemm = errors_at(CalibrationLevel::one_gemm);
  const std::vector<GroupErrors> datasheet = errors_at(CalibrationLevel::datasheet);
  // Every level has the same rows in the same groups.
  std::vector<HoldoutErrors> errors;
  for (std::size_t g = 0; g < full.size(); ++g) {
    if (full[g].configurations == 0) continue;
    HoldoutErrors& e = errors.emplace_back(HoldoutErrors{full[g], std::nullopt, datasheet[g]});
    if (one_gemm[g].configurations == full[g].configurations) e.one_product = one_gemm[g];
  }
  return errors;
}

}  // namespace tbdsim
