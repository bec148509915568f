#include "calibrate/fit/fit_steps.h"

#include <cmath>
#include <cstdlib>
#include <set>
#include <tuple>

#include "calibrate/fit/kriging_fit.h"
#include "calibrate/samples/launch_floor.h"
#include "costmodel/hardware.h"

namespace tbdsim {
namespace {

constexpr double kOwnParameterSd = 0.25;  // of a GPU's parameters about those of its generation
constexpr double kOwnClockSd = 0.03;
constexpr double kLeastAboveFloor = 1.5;  // a time below 1.5 floors says little about the kernel
constexpr double kCoverage = 0.8;
constexpr double kLeastSd = 1e-3;
constexpr double kWidestInterval = 100;

// "cudnn6/fp32" -> cudnn, 6.
std::pair<std::string, int> library_of(const std::string& block) {
  const std::size_t digit = std::min(block.find_first_of("0123456789"), block.find('/'));
  return {block.substr(0, digit), std::atoi(block.c_str() + digit)};
}

std::string anchor_key(std::string_view set, std::string_view gpu, std::string_view block) {
  return std::string(set) + "|" + std::string(gpu) + "|" + precision_of(block);
}

Anchors anchors_of(const Samples<GemmFamily>& gemms) {
  constexpr std::size_t kLargest = 60;
  constexpr double kRank = 0.9;
  constexpr double kLeastAnchorTime = 2e-4;  // s; shorter ones are launches more than products
  std::map<std::string, std::vector<std::pair<double, double>>> found;  // work, achieved share
  for (const Sample<GemmFamily>& s : gemms) {
    if (s.time_s < kLeastAnchorTime) continue;
    const double flops = GemmFamily::flops(s.call);
    found[anchor_key(s.set, s.gpu, s.block)].push_back({flops, flops / (s.time_s * s.hardware.peak)});
  }
  Anchors anchors;
  for (auto& [key, all] : found) {
    std::sort(all.rbegin(), all.rend());
    std::vector<double> shares;
    const std::size_t largest = std::min(kLargest, (all.size() + 2) / 3);
    for (std::size_t i = 0; i < largest; ++i) shares.push_back(all[i].second);
    std::sort(shares.begin(), shares.end());
    anchors[key] =
        shares[static_cast<std::size_t>(std::ceil(kRank * static_cast<double>(shares.size()))) - 1];
  }
  return anchors;
}

}  // namespace

std::string precision_of(std::string_view block) { return std::string(block.substr(block.find('/') + 1)); }

double quantile(std::vector<double> values, double share) {
  if (values.empty()) return kDefaultInterval;
  const auto place =
      values.begin() + static_cast<std::ptrdiff_t>(share * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), place, values.end());
  return *place;
}

ClockKnowledge clock_knowledge(std::span<const Record> records, const GpuSpecs& gpus) {
  ClockKnowledge clocks{anchors_of(samples_of<GemmFamily>(records, gpus)), {}};
  for (const auto& [name, gpu] : gpus) clocks.expected[name] = expected_clock(gpu);
  return clocks;
}

template <class Family>
std::optional<double> anchor_of(const Sample<Family>& s, const ClockKnowledge& clocks) {
  const auto found = clocks.anchors.find(anchor_key(s.set, s.gpu, s.block));
  return found == clocks.anchors.end() ? std::nullopt : std::optional(found->second);
}

template <class Family>
Prior clock_of(const Sample<Family>& s, const ClockKnowledge& clocks, bool anchored) {
  if (const auto anchor = anchor_of(s, clocks); anchored && anchor) return {*anchor, kAnchoredClockSd};
  const auto expected = clocks.expected.find(s.gpu);
  return expected == clocks.expected.end() ? Prior{} : expected->second;
}

template <class Family>
FitOptions fit_options(const Samples<Family>& samples, const ClockKnowledge& clocks) {
  FitOptions options;
  for (const Sample<Family>& s : samples) options.gpus[s.gpu].clock = clock_of(s, clocks, true);
  return options;
}

template <class Family>
FitOptions options_around(const FamilyFit& shared) {
  FitOptions options;
  for (std::size_t i = 0; i < shared.parameters.size(); ++i) {
    options.parameters.push_back(
        {shared.parameters[i], std::min(kOwnParameterSd, Family::parameters[i].prior)});
  }
  for (const auto& [gpu, found] : shared.gpus) options.gpus[gpu].clock = {found.sustained.clock, kOwnClockSd};
  return options;
}

template <class Family>
std::vector<Residual<Family>> residuals_of(const Samples<Family>& samples, const FamilyFit& fit) {
  std::vector<Residual<Family>> residuals;
  for (const Sample<Family>& s : samples) {
    const GpuFit& gpu = fit.gpus.at(s.gpu);
    const double floor = s.floor ? gpu.floors.at(s.op) : 0;
    if (s.time_s < kLeastAboveFloor * floor) continue;
    const double kernel = s.floor ? kernel_behind(s.time_s, floor) : s.time_s;
    const double residual = std::log(kernel / formula_of(s, fit, gpu.sustained));
    residuals.push_back({{s.features, residual, static_cast<int>(residuals.size())}, &s});
  }
  return residuals;
}

template <class Family>
Samples<Family> same_architecture(const Sample<Family>& held_out, const Samples<Family>& all) {
  constexpr double kOtherArchitecture = 2;
  const auto [library, version] = library_of(held_out.block);
  std::map<std::string, double> unlike;  // by block
  for (const Sample<Family>& s : all) {
    const auto [other_library, other_version] = library_of(s.block);
    if (s.gpu == held_out.gpu || other_library != library ||
        precision_of(s.block) != precision_of(held_out.block))
      continue;
    const double by =
        std::abs(version - other_version) +
        (architecture_of(s.hardware) == architecture_of(held_out.hardware) ? 0 : kOtherArchitecture);
    const auto [it, added] = unlike.emplace(s.block, by);
    it->second = std::min(it->second, by);
  }
  if (unlike.empty()) return {};
  const auto nearest = std::min_element(unlike.begin(), unlike.end(),
                                        [](const auto& a, const auto& b) { return a.second < b.second; });
  return where(all,
               [&](const Sample<Family>& s) { return s.block == nearest->first && s.gpu != held_out.gpu; });
}

template <class Family>
Samples<Family> other_gpus(const Sample<Family>& held_out, const Samples<Family>& all) {
  const std::string library = library_of(held_out.block).first;
  return where(all, [&](const Sample<Family>& s) {
    return s.gpu != held_out.gpu && library_of(s.block).first == library &&
           precision_of(s.block) == precision_of(held_out.block);
  });
}

template <class Family>
Samples<Family> informative(const Sample<Family>& held_out, const Samples<Family>& kin) {
  return where(kin, [&](const Sample<Family>& s) {
    return s.block == held_out.block || architecture_of(s.hardware) == architecture_of(held_out.hardware);
  });
}

template <class Family>
FamilyFit fit_with_generations(const Samples<Family>& samples, const Samples<Family>& all,
                               FitOptions options) {
  if (all.size() > samples.size()) {
    FitOptions every = options;
    for (const Sample<Family>& s : all) every.gpus.try_emplace(s.gpu);
    const FamilyFit prior = fit_family<Family>(all, every);
    options.parameters = options_around<Family>(prior).parameters;
  }
  return fit_family<Family>(samples, options);
}

// Of rows in the order of their residuals, from `begin` to `end`.
template <class Family>
double weighted_median(const std::vector<Residual<Family>>& rows, std::size_t begin, std::size_t end,
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

template <class Family>
std::vector<Residual<Family>> medians_over_gpus(std::vector<Residual<Family>> residuals, int architecture) {
  const auto place = [](const Residual<Family>& r) { return std::tie(r.row.at.group, r.row.at.x); };
  std::stable_sort(residuals.begin(), residuals.end(), [&](const auto& a, const auto& b) {
    return std::tie(a.row.at.group, a.row.at.x, a.row.residual) <
           std::tie(b.row.at.group, b.row.at.x, b.row.residual);
  });
  std::vector<Residual<Family>> merged;
  for (std::size_t begin = 0, end = 0; begin < residuals.size(); begin = end) {
    while (end < residuals.size() && place(residuals[end]) == place(residuals[begin])) ++end;
    Residual<Family> median = residuals[begin];
    median.row.residual = weighted_median(residuals, begin, end, architecture);
    median.row.call = static_cast<int>(merged.size());
    merged.push_back(median);
  }
  return merged;
}

template <class Family>
Kriging kriging_of(const std::vector<Residual<Family>>& residuals) {
  std::map<std::string, std::vector<ResidualRow>> cards;
  for (const Residual<Family>& r : residuals) cards[r.sample->gpu].push_back(r.row);
  return fit_kriging_between(cards);
}

template <class Family>
ClockRatio clock_ratio(const Samples<Family>& samples, const FamilyFit& fit, const ClockKnowledge& clocks,
                       bool anchored) {
  std::map<std::string, double> ratios;
  for (const Sample<Family>& s : samples) {
    ratios[s.gpu] = std::log(fit.gpus.at(s.gpu).sustained.clock / clock_of(s, clocks, anchored).mean);
  }
  std::vector<double> values;
  for (const auto& [gpu, ratio] : ratios) values.push_back(ratio);
  std::sort(values.begin(), values.end());
  const std::size_t low = (values.size() - 1) / 2, high = values.size() / 2;
  ClockRatio result{std::exp((values[low] + values[high]) / 2), 0};
  for (const double value : values) result.sd += std::pow(value - std::log(result.median), 2);
  result.sd = std::sqrt(result.sd / static_cast<double>(values.size()));
  return result;
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
  return std::min(kWidestInterval, quantile(off, kCoverage));
}

template <class Family>
double interval_between_gpus(const std::vector<Residual<Family>>& residuals, const Kriging& kriging) {
  std::set<std::string> gpus;
  for (const Residual<Family>& r : residuals) gpus.insert(r.sample->gpu);
  std::vector<double> off;
  for (const std::string& gpu : gpus) {
    std::vector<ResidualRow> others;
    for (const Residual<Family>& r : residuals) {
      if (r.sample->gpu != gpu) others.push_back(r.row);
    }
    if (others.empty()) continue;
    const ResidualTable table(std::move(others));
    std::vector<double> errors, deviations;
    for (const Residual<Family>& r : residuals) {
      if (r.sample->gpu != gpu) continue;
      const ResidualEstimate estimate = table.estimate(r.row.at, kriging);
      errors.push_back(r.row.residual - estimate.mean);
      deviations.push_back(std::max(estimate.sd, kLeastSd));
    }
    std::vector<double> sorted = errors;
    const double own = quantile(sorted, 0.5);
    for (std::size_t i = 0; i < errors.size(); ++i) off.push_back(std::abs(errors[i] - own) / deviations[i]);
  }
  return quantile(off, kCoverage);
}

#define TBDSIM_INSTANTIATE(Family)                                                                         \
  template std::optional<double> anchor_of<Family>(const Sample<Family>&, const ClockKnowledge&);          \
  template Prior clock_of<Family>(const Sample<Family>&, const ClockKnowledge&, bool);                     \
  template FitOptions fit_options<Family>(const Samples<Family>&, const ClockKnowledge&);                  \
  template FitOptions options_around<Family>(const FamilyFit&);                                            \
  template std::vector<Residual<Family>> residuals_of<Family>(const Samples<Family>&, const FamilyFit&);   \
  template Samples<Family> same_architecture<Family>(const Sample<Family>&, const Samples<Family>&);       \
  template Samples<Family> other_gpus<Family>(const Sample<Family>&, const Samples<Family>&);              \
  template Samples<Family> informative<Family>(const Sample<Family>&, const Samples<Family>&);             \
  template FamilyFit fit_with_generations<Family>(const Samples<Family>&, const Samples<Family>&,          \
                                                  FitOptions);                                             \
  template Kriging kriging_of<Family>(const std::vector<Residual<Family>>&);                               \
  template std::vector<Residual<Family>> medians_over_gpus<Family>(std::vector<Residual<Family>>, int);    \
  template ClockRatio clock_ratio<Family>(const Samples<Family>&, const FamilyFit&, const ClockKnowledge&, \
                                          bool);                                                           \
  template double interval_between_gpus<Family>(const std::vector<Residual<Family>>&, const Kriging&);
TBDSIM_FOR_EACH_FAMILY(TBDSIM_INSTANTIATE)
#undef TBDSIM_INSTANTIATE

}  // namespace tbdsim
