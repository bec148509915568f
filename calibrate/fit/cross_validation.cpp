#include "calibrate/fit/cross_validation.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>
#include <numeric>
#include <set>

#include <tbb/parallel_for.h>

#include "calibrate/fit/baselines.h"
#include "calibrate/fit/family_fit.h"
#include "calibrate/fit/generation_fit.h"
#include "calibrate/fit/residuals.h"
#include "calibrate/fit/sample_selection.h"
#include "calibrate/samples/launch_floor.h"
#include "costmodel/families/families.h"
#include "costmodel/residuals/residual_table.h"
#include "hwspecs/base/statistics.h"

namespace tbdsim {
namespace {

std::uint32_t hash_of(std::string_view text) {
  std::uint32_t hash = 2166136261U;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619U;
  return hash ^ (hash >> 15);
}

template <class Family>
FitOptions options_for(const Samples<Family>& samples, const CrossvalOptions& options) {
  FitOptions fit = fit_options(samples, options.clocks);
  fit.starts = options.starts;
  fit.threads = options.threads;
  return fit;
}

template <template <class> class Simple, class Family>
Samples<Simple<Family>> as(const Samples<Family>& samples) {
  Samples<Simple<Family>> converted;
  for (const Sample<Family>& s : samples) {
    converted.push_back({s.call, s.hardware, s.unmeasured, s.gpu, s.block, s.set, s.shape, s.layer, s.phase,
                         s.time_s, s.sigma, s.floor, s.op, s.features});
  }
  return converted;
}

// A fit, and the expected sustained clock and bandwidth of a GPU that it left out.
template <class Family>
struct Fitted {
  FamilyFit fit;
  std::map<std::string, AchievedFraction<double>> held_out;

  [[nodiscard]] AchievedFraction<double> sustained(const std::string& gpu) const {
    const auto found = fit.gpus.find(gpu);
    return found != fit.gpus.end() ? found->second.sustained : held_out.at(gpu);
  }
};

template <template <class> class Simple, class Family>
std::vector<double> baseline(const Samples<Family>& train, const Samples<Family>& test,
                             const Fitted<Family>& fitted, const CrossvalOptions& options) {
  const auto train_simple = as<Simple>(train);
  FitOptions fit_options = options_for(train, options);
  for (auto& [gpu, prior] : fit_options.gpus) prior.bandwidth.sd = 0;
  const FamilyFit fit = fit_family<Simple<Family>>(train_simple, fit_options);
  std::vector<double> times;
  for (const Sample<Simple<Family>>& s : as<Simple>(test)) {
    const auto found = fit.gpus.find(s.gpu);
    const AchievedFraction<double> sustained =
        found != fit.gpus.end() ? found->second.sustained : fitted.sustained(s.gpu);
    times.push_back(formula_of(s, fit, sustained));
  }
  return times;
}

// Median launch floor of an op over the fitted GPUs, in seconds; 0: none was fitted.
double usual_floor(const FamilyFit& fit, const std::string& op) {
  std::vector<double> values;
  for (const auto& [gpu, found] : fit.gpus) {
    const auto it = found.floors.find(op);
    if (it != found.floors.end()) values.push_back(it->second);
  }
  return values.empty() ? 0 : median(values);
}

// Launch floors in seconds by GPU and op, which are not part of a prediction. The floor of a held-out GPU is
// the median over its own calls that are shorter than the floor; without such calls, the median of the other
// GPUs' floors.
template <class Family>
std::map<std::pair<std::string, std::string>, double> floors_of(const Samples<Family>& test,
                                                                const Fitted<Family>& fitted) {
  std::map<std::pair<std::string, std::string>, double> floors;
  std::map<std::pair<std::string, std::string>, std::vector<double>> shown;
  for (const Sample<Family>& s : test) {
    if (!s.floor) continue;
    const auto found = fitted.fit.gpus.find(s.gpu);
    if (found != fitted.fit.gpus.end() && found->second.floors.contains(s.op)) {
      floors[{s.gpu, s.op}] = found->second.floors.at(s.op);
      continue;
    }
    const double usual = usual_floor(fitted.fit, s.op);
    floors[{s.gpu, s.op}] = usual;
    const double formula = formula_of(s, fitted.fit, fitted.sustained(s.gpu));
    if (formula < usual || usual == 0) shown[{s.gpu, s.op}].push_back(floor_behind(s.time_s, formula));
  }
  for (auto& [key, values] : shown) floors[key] = std::max(0.0, median(values));
  return floors;
}

template <class Family>
void judge(const Samples<Family>& train, const Samples<Family>& residual_train, const Samples<Family>& test,
           const Fitted<Family>& fitted, Protocol protocol, int fold, const CrossvalOptions& options,
           std::vector<Outcome>& outcomes) {
  const std::vector<SampleResidual<Family>> residuals = residuals_of(residual_train, fitted.fit);
  std::vector<ResidualRow> rows;
  for (const SampleResidual<Family>& r : medians_over_gpus(residuals, architecture_of(test.front().hardware)))
    rows.push_back(r.row);
  const ResidualTable table(std::move(rows));
  const Kriging kriging = kriging_of(residuals);
  std::vector<double> constant(test.size(), 0), roofline(test.size(), 0);
  if (options.baselines) {
    constant = baseline<ConstantShare>(train, test, fitted, options);
    roofline = baseline<PlainRoofline>(train, test, fitted, options);
  }
  const auto floors = floors_of(test, fitted);
  for (std::size_t i = 0; i < test.size(); ++i) {
    const Sample<Family>& s = test[i];
    const double formula = formula_of(s, fitted.fit, fitted.sustained(s.gpu));
    const double floor = s.floor ? floors.at({s.gpu, s.op}) : 0;
    const auto shown = [&](double kernel) { return s.floor ? shown_time(kernel, floor) : kernel; };
    const ResidualEstimate estimate = table.estimate(s.features, kriging);
    const double with_residual = formula * std::exp(estimate.mean);
    // One fit predicts all largest batches, so that folds for the interval are made of layers.
    const int judged_with =
        protocol == Protocol::largest_batch ? static_cast<int>(hash_of(s.layer) % 5) : fold;
    outcomes.push_back({Family::name, protocol, s.block, s.gpu, s.phase, s.set, judged_with, s.time_s,
                        shown(formula), shown(with_residual),
                        estimate.sd * with_residual / (with_residual + floor), shown(constant[i]),
                        shown(roofline[i]), false});
  }
}

// |ln(predicted / measured)| in standard deviations.
double off_by(const Outcome& o) { return std::abs(std::log(o.residual / o.measured)) / std::max(o.sd, 1e-3); }

// Sets `inside` of each outcome: whether it lies within the 80 % interval whose width is fitted to the other
// folds, for each data set and precision separately.
void judge_intervals(std::vector<Outcome>& outcomes) {
  std::map<std::pair<std::string, std::string>, std::map<int, std::vector<Outcome*>>> groups;
  for (Outcome& o : outcomes) groups[{o.set, precision_of(o.block)}][o.fold].push_back(&o);
  for (auto& [group, folds] : groups) {
    for (auto& [fold, members] : folds) {
      std::vector<double> others;
      for (const auto& [other, rest] : folds) {
        if (other == fold && folds.size() > 1) continue;
        for (const Outcome* o : rest) others.push_back(off_by(*o));
      }
      const double width = interval_width(others);
      for (Outcome* o : members) o->inside = off_by(*o) <= width;
    }
  }
}

// Fits to the samples outside one fold and predicts the samples in it. Folds are independent and run
// concurrently.
using Fold = std::function<std::vector<Outcome>()>;

template <class Family>
std::vector<Outcome> own_parameters(const Samples<Family>& train, const Samples<Family>& test,
                                    Protocol protocol, int fold, const CrossvalOptions& options) {
  const FamilyFit shared = fit_family<Family>(train, options_for(train, options));
  std::set<std::string> gpus;
  for (const Sample<Family>& s : test) gpus.insert(s.gpu);
  std::vector<Outcome> outcomes;
  for (const std::string& gpu : gpus) {
    const auto mine = [&](const Sample<Family>& s) { return s.gpu == gpu; };
    const Samples<Family> own = where(train, mine);
    if (own.empty()) continue;
    const Fitted<Family> fitted{fit_family<Family>(own, options_around<Family>(shared)), {}};
    judge(own, own, where(test, mine), fitted, protocol, fold, options, outcomes);
  }
  return outcomes;
}

template <class Family>
void hold_out_shapes(const Samples<Family>& samples, const CrossvalOptions& options,
                     std::vector<Fold>& folds) {
  for (int fold = 0; fold < options.folds; ++fold) {
    folds.push_back([&samples, &options, fold] {
      const auto held = [&](const Sample<Family>& s) {
        return static_cast<int>(hash_of(s.shape) % static_cast<std::uint32_t>(options.folds)) == fold;
      };
      options.progress(samples.front().block + ", shapes, fold " + std::to_string(fold + 1));
      return own_parameters(where(samples, std::not_fn(held)), where(samples, held), Protocol::shapes, fold,
                            options);
    });
  }
}

template <class Family>
std::vector<Outcome> without_largest_batches(const Samples<Family>& samples, const CrossvalOptions& options) {
  const auto key = [](const Sample<Family>& s) { return s.gpu + "|" + s.phase + "|" + s.layer; };
  std::map<std::string, std::pair<double, double>> span;  // of the work of a layer over its batches
  for (const Sample<Family>& s : samples) {
    const double work = Family::flops(s.call) + Family::bytes(s.call);
    const auto [it, added] = span.emplace(key(s), std::pair{work, work});
    it->second.first = std::min(it->second.first, work);
    it->second.second = std::max(it->second.second, work);
  }
  const auto held = [&](const Sample<Family>& s) {
    const auto& [least, most] = span.at(key(s));
    return least < most && Family::flops(s.call) + Family::bytes(s.call) == most;
  };
  options.progress(samples.front().block + ", largest batches");
  return own_parameters(where(samples, std::not_fn(held)), where(samples, held), Protocol::largest_batch, 0,
                        options);
}

// Sustained clock and bandwidth of a GPU that was not fitted: its prior clock times the median ratio of
// fitted to prior clock of the GPUs in `train`; bandwidth 1.
template <class Family>
AchievedFraction<double> held_out_rates(const Samples<Family>& train, const Sample<Family>& held,
                                        const FamilyFit& fit, bool anchored, const CrossvalOptions& options) {
  return {clock_of(held, options.clocks, anchored).mean *
              clock_ratio(train, fit, options.clocks, anchored).median,
          1};
}

template <class Family>
std::vector<Outcome> without_gpu(const std::string& gpu, const Samples<Family>& block,
                                 const Samples<Family>& all, Protocol protocol,
                                 const CrossvalOptions& options) {
  std::vector<Outcome> outcomes;
  Samples<Family> test = where(block, [&](const Sample<Family>& s) { return s.gpu == gpu; });
  for (Sample<Family>& s : test) s.hardware.power = s.unmeasured;
  const Sample<Family>& held = test.front();
  const Samples<Family> train = same_architecture(held, all);
  if (train.empty()) return outcomes;
  options.progress(held.block + ", without " + gpu);
  Fitted<Family> fitted{fit_with_generations(train, other_gpus(held, all), options_for(train, options)), {}};
  const Samples<Family> alike = most_alike(held.hardware.compute_capability, train);
  const bool some = alike.size() < train.size();
  if (some) fitted.fit = fit_family<Family>(alike, options_around<Family>(fitted.fit));
  fitted.held_out[gpu] = held_out_rates(alike, held, fitted.fit, protocol == Protocol::gpu_one_gemm, options);
  judge(alike, some ? alike : informative(held, train), test, fitted, protocol,
        static_cast<int>(hash_of(gpu) % 1000), options, outcomes);
  return outcomes;
}

template <class Family>
void hold_out_gpus(const Samples<Family>& block, const Samples<Family>& all, Protocol protocol,
                   const CrossvalOptions& options, std::vector<Fold>& folds) {
  std::set<std::string> gpus;
  for (const Sample<Family>& s : block) gpus.insert(s.gpu);
  for (const std::string& gpu : gpus) {
    folds.push_back(
        [&block, &all, &options, gpu, protocol] { return without_gpu(gpu, block, all, protocol, options); });
  }
}

std::vector<Outcome> run(const std::vector<Fold>& folds) {
  std::vector<std::vector<Outcome>> found(folds.size());
  tbb::parallel_for(std::size_t{0}, folds.size(), [&](std::size_t i) { found[i] = folds[i](); });
  std::vector<Outcome> outcomes;
  for (const std::vector<Outcome>& of_fold : found)
    outcomes.insert(outcomes.end(), of_fold.begin(), of_fold.end());
  return outcomes;
}

}  // namespace

template <class Family>
std::vector<Outcome> cross_validate(std::span<const Sample<Family>> samples, Protocol protocol,
                                    const CrossvalOptions& given) {
  CrossvalOptions options = given;
  std::mutex lock;  // folds run at the same time
  options.progress = [&](std::string_view step) {
    const std::scoped_lock held(lock);
    if (given.progress) given.progress(step);
  };
  std::map<std::string, Samples<Family>> blocks;
  for (const Sample<Family>& s : samples) blocks[s.block + "|" + s.set].push_back(s);
  const Samples<Family> all(samples.begin(), samples.end());
  std::vector<Fold> folds;
  for (const auto& entry : blocks) {
    const Samples<Family>& block = entry.second;
    if (protocol == Protocol::shapes) {
      hold_out_shapes(block, options, folds);
    } else if (protocol == Protocol::largest_batch) {
      folds.push_back([&block, &options] { return without_largest_batches(block, options); });
    } else {
      hold_out_gpus(block, all, protocol, options, folds);
    }
  }
  std::vector<Outcome> outcomes = run(folds);
  if (!outcomes.empty()) judge_intervals(outcomes);
  return outcomes;
}

ErrorSummary summarize(std::span<const Outcome> outcomes, double Outcome::*predicted) {
  ErrorSummary summary;
  std::vector<double> relative;
  for (const Outcome& o : outcomes) {
    const double ratio = o.*predicted / o.measured;
    summary.geometric += std::abs(std::log(ratio));
    summary.bias += std::log(ratio);
    relative.push_back(std::abs(ratio - 1));
  }
  if (relative.empty()) return summary;
  const auto n = static_cast<double>(relative.size());
  std::sort(relative.begin(), relative.end());
  summary.count = static_cast<int>(relative.size());
  summary.geometric = std::exp(summary.geometric / n) - 1;
  summary.bias = std::exp(summary.bias / n) - 1;
  summary.median = quantile(relative, 0.5);
  summary.p90 = quantile(relative, 0.9);
  return summary;
}

#define TBDSIM_INSTANTIATE(Family)                                                                \
  template std::vector<Outcome> cross_validate<Family>(std::span<const Sample<Family>>, Protocol, \
                                                       const CrossvalOptions&);
TBDSIM_FOR_EACH_FAMILY(TBDSIM_INSTANTIATE)
#undef TBDSIM_INSTANTIATE

}  // namespace tbdsim
