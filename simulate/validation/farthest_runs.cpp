#include "simulate/validation/farthest_runs.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <sstream>

#include "hwspecs/base/csv.h"
#include "hwspecs/base/error.h"
#include "simulate/prediction/predict.h"

namespace tbdsim {
namespace {

constexpr std::size_t kMost = 10;

// |ln(predicted / measured)|: half of the measured value is as far off as twice of it.
double distance(const Configuration& c) { return std::abs(std::log1p(c.error())); }

std::optional<Prediction> prediction_of(const Configuration& c, const std::string& profile,
                                        const Resolver& resolve) {
  std::stringstream table;
  write_csv_row(table, std::vector<std::string>(kRunIdentity.begin(), kRunIdentity.end()));
  write_csv_row(table, c.run);
  CsvReader reader(table, "configuration");
  const RunColumns columns(reader);
  std::vector<std::string> row;
  if (!reader.next(row)) return std::nullopt;
  try {
    Scenario scenario = scenario_of(columns, row, resolve);
    scenario.profile = profile;
    return predict(scenario, resolve);
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace

std::vector<FarthestRun> farthest_runs(const Validation& validation, const std::string& profile,
                                       const Resolver& resolve) {
  std::vector<const Configuration*> all;
  for (const Configuration& c : validation.configurations) {
    if (c.prediction.ok() && c.section == "score") all.push_back(&c);
  }
  std::stable_sort(all.begin(), all.end(), [](const Configuration* a, const Configuration* b) {
    return distance(*a) > distance(*b);
  });
  all.resize(std::min(all.size(), kMost));
  std::vector<FarthestRun> farthest;
  for (const Configuration* c : all) farthest.push_back({c, prediction_of(*c, profile, resolve)});
  return farthest;
}

}  // namespace tbdsim
