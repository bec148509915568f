#include "calibrate/fit/residuals.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "calibrate/fit/baselines.h"
#include "calibrate/fit/kriging_fit.h"
#include "calibrate/samples/launch_floor.h"
#include "costmodel/families/families.h"
#include "hwspecs/base/statistics.h"

namespace tbdsim {
namespace {

constexpr double kLeastAboveFloor = 1.5;  // launch floors
constexpr double kCoverage = 0.8;
constexpr double kLeastSd = 1e-3;
constexpr double kWidestInterval = 100;

// The median of rows begin to end - 1, which are sorted by their residuals.
template <class Family>
double weighted_median(const std::vector<SampleResidual<Family>>& rows, std::size_t begin, std::size_t end,
                       int architecture) {
  const auto weight = [&](std::size_t i) {
    return architecture_of(rows[i].sample->hardware) == architecture ? 2 : 1;
  };
  int all = 0;
  for (std::size_t i = begin; i < end; ++i) all += weight(i);
  int below = 0;
  for (std::size_t i = begin; i < end; ++i) {
    below += weight(i);
    if (2 * below == all) return (rows[i].row.residual + rows[i + 1].row.residual) / 2;
    if (2 * below > all) return rows[i].row.residual;
  }
  return 0;
}

}  // namespace

template <class Family>
double formula_of(const Sample<Family>& s, const FamilyFit& fit, const AchievedFraction<double>& sustained) {
  return kernel_time<Family>(s.call, s.hardware, sustained, fit.parameters).parts.total;
}

template <class Family>
std::vector<SampleResidual<Family>> residuals_of(const Samples<Family>& samples, const FamilyFit& fit) {
  std::vector<SampleResidual<Family>> residuals;
  for (const Sample<Family>& s : samples) {
    const GpuFit& gpu = fit.gpus.at(s.gpu);
    const auto its_floor = gpu.floors.find(s.op);
    if (s.floor && its_floor == gpu.floors.end()) continue;
    const double floor = s.floor ? its_floor->second : 0;
    if (s.time_s < kLeastAboveFloor * floor) continue;
    const double kernel = s.floor ? kernel_behind(s.time_s, floor) : s.time_s;
    const double residual = std::log(kernel / formula_of(s, fit, gpu.sustained));
    residuals.push_back({{s.features, residual, static_cast<int>(residuals.size())}, &s});
  }
  return residuals;
}

template <class Family>
std::vector<SampleResidual<Family>> medians_over_gpus(std::vector<SampleResidual<Family>> residuals,
                                                      int architecture) {
  const auto place = [](const SampleResidual<Family>& r) { return std::tie(r.row.at.group, r.row.at.x); };
  std::stable_sort(residuals.begin(), residuals.end(), [&](const auto& a, const auto& b) {
    return std::tie(a.row.at.group, a.row.at.x, a.row.residual) <
           std::tie(b.row.at.group, b.row.at.x, b.row.residual);
  });
  std::vector<SampleResidual<Family>> merged;
  for (std::size_t begin = 0, end = 0; begin < residuals.size(); begin = end) {
    while (end < residuals.size() && place(residuals[end]) == place(residuals[begin])) ++end;
    SampleResidual<Family> middle = residuals[begin];
    middle.row.residual = weighted_median(residuals, begin, end, architecture);
    middle.row.call = static_cast<int>(merged.size());
    merged.push_back(middle);
  }
  return merged;
}

template <class Family>
Kriging kriging_of(const std::vector<SampleResidual<Family>>& residuals) {
  std::map<std::string, std::vector<ResidualRow>> cards;
  for (const SampleResidual<Family>& r : residuals) cards[r.sample->gpu].push_back(r.row);
  return fit_kriging_between(cards);
}

double interval_width(std::vector<double> deviations) {
  if (deviations.empty()) return kDefaultInterval;
  std::sort(deviations.begin(), deviations.end());
  return quantile(deviations, kCoverage);
}

double interval_of(const ResidualTable& table, const std::vector<ResidualRow>& rows, const Kriging& kriging) {
  std::map<std::pair<std::uint64_t, decltype(Features::x)>, int> place;
  for (std::size_t i = 0; i < table.rows().size(); ++i) {
    place[{table.rows()[i].at.group, table.rows()[i].at.x}] = static_cast<int>(i);
  }
  std::vector<double> off;
  for (const ResidualRow& row : rows) {
    const auto own = place.find({row.at.group, row.at.x});
    const ResidualEstimate estimate = table.estimate(row.at, kriging, own == place.end() ? -1 : own->second);
    off.push_back(std::abs(row.residual - estimate.mean) / std::max(estimate.sd, kLeastSd));
  }
  return std::min(kWidestInterval, interval_width(off));
}

template <class Family>
double interval_between_gpus(const std::vector<SampleResidual<Family>>& residuals, const Kriging& kriging) {
  std::set<std::string> gpus;
  for (const SampleResidual<Family>& r : residuals) gpus.insert(r.sample->gpu);
  std::vector<double> off;
  for (const std::string& gpu : gpus) {
    std::vector<ResidualRow> others;
    for (const SampleResidual<Family>& r : residuals) {
      if (r.sample->gpu != gpu) others.push_back(r.row);
    }
    if (others.empty()) continue;
    const ResidualTable table(std::move(others));
    std::vector<double> errors, deviations;
    for (const SampleResidual<Family>& r : residuals) {
      if (r.sample->gpu != gpu) continue;
      const ResidualEstimate estimate = table.estimate(r.row.at, kriging);
      errors.push_back(r.row.residual - estimate.mean);
      deviations.push_back(std::max(estimate.sd, kLeastSd));
    }
    const double own = median(errors);
    for (std::size_t i = 0; i < errors.size(); ++i) off.push_back(std::abs(errors[i] - own) / deviations[i]);
  }
  return interval_width(off);
}

#define TBDSIM_FORMULA(Family)                                                \
  template double formula_of<Family>(const Sample<Family>&, const FamilyFit&, \
                                     const AchievedFraction<double>&);
#define TBDSIM_INSTANTIATE(Family)                                                          \
  TBDSIM_FORMULA(Family)                                                                    \
  TBDSIM_FORMULA(ConstantShare<Family>)                                                     \
  TBDSIM_FORMULA(PlainRoofline<Family>)                                                     \
  template std::vector<SampleResidual<Family>> residuals_of<Family>(const Samples<Family>&, \
                                                                    const FamilyFit&);      \
  template std::vector<SampleResidual<Family>> medians_over_gpus<Family>(                   \
      std::vector<SampleResidual<Family>>, int);                                            \
  template Kriging kriging_of<Family>(const std::vector<SampleResidual<Family>>&);          \
  template double interval_between_gpus<Family>(const std::vector<SampleResidual<Family>>&, const Kriging&);
TBDSIM_FOR_EACH_FAMILY(TBDSIM_INSTANTIATE)
#undef TBDSIM_INSTANTIATE
#undef TBDSIM_FORMULA

}  // namespace tbdsim
