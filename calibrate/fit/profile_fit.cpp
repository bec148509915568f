#include "calibrate/fit/profile_fit.h"

#include <algorithm>
#include <cmath>
#include <set>

#include <fmt/format.h>

#include "calibrate/fit/cross_validation.h"
#include "calibrate/fit/family_fit.h"
#include "calibrate/fit/generation_fit.h"
#include "calibrate/fit/representative_rows.h"
#include "calibrate/fit/residuals.h"
#include "costmodel/families/families.h"
#include "costmodel/hardware.h"
#include "costmodel/power.h"
#include "costmodel/profile/generation.h"
#include "hwspecs/base/error.h"
#include "hwspecs/base/suggest.h"

namespace tbdsim {
namespace {

constexpr std::size_t kFewestSamples =
    18;  // of a block to be fitted: parameters have priors; an H100 has so many of recurrent layers
constexpr std::size_t kMostFitted =
    300;  // of a GPU and block; more tell no more (family_fit.h, `independent`)

// "cudnn6/fp32" -> fp32.
MathType math_of_block(std::string_view key) {
  const std::string_view precision = key.substr(key.find('/') + 1);
  return static_cast<MathType>(std::find(kMathTypeNames.begin(), kMathTypeNames.end(), precision) -
                               kMathTypeNames.begin());
}

// "cudnn6/fp32" -> cudnn/fp32: blocks of one sort differ in the library's version.
std::string kind_of_block(std::string_view key) {
  const std::size_t slash = key.find('/');
  return generation_of(key.substr(0, slash)).library + std::string(key.substr(slash));
}

// Inputs of the fits of all families, and the profile that they fill in.
struct Context {
  const ProfileFitOptions& options;
  const GpuSpecs& gpus;
  ClockPriors clocks;
  Profile& profile;
  std::vector<std::string> too_few{};  // blocks that were left out: "5 of gemm (cublas8/fp32)"

  // True if the profile's GPU, or a GPU of its architecture, computes in the block's arithmetic.
  [[nodiscard]] bool computes(std::string_view block) const {
    const std::size_t math = index_of(math_of_block(block));
    if (!options.gpu.empty()) return gpus.at(options.gpu).math[math].has_value();
    return std::any_of(gpus.begin(), gpus.end(), [&](const auto& named) {
      const GpuSpec& gpu = named.second;
      return gpu.math[math].has_value() &&
             (options.architecture.empty() || instructions_of(gpu) == options.architecture);
    });
  }
  // Major compute capability of the GPU or architecture that the profile is for; 0: neither.
  [[nodiscard]] int architecture() const {
    for (const auto& [name, gpu] : gpus) {
      if (name == options.gpu || instructions_of(gpu) == options.architecture)
        return static_cast<int>(gpu.compute_capability);
    }
    return 0;
  }
  [[nodiscard]] bool is_target(const std::string& gpu) const { return gpu == options.gpu; }
};

template <class Family>
void note_records(const Samples<Family>& samples, ProfileBlock& block) {
  for (const Sample<Family>& s : samples) {
    ++block.records[s.gpu + ", " + s.set];
    block.capability = std::max(block.capability, s.hardware.compute_capability / 10);
  }
}

template <class Family>
void take_parameters(const FamilyFit& fit, ProfileBlock& block) {
  block.parameters = fit.parameters;
  for (std::size_t i = 0; i < fit.parameters.size(); ++i) {
    if (fit.at_bound[i]) block.at_bound.emplace_back(Family::parameters[i].name);
  }
  for (const double share : fit.determined) block.effective_parameters += share;
  block.converged = fit.converged;
  block.iterations = fit.iterations;
  block.cost = fit.cost;
}

// Fills in the block's residual table, its kriging parameters and the width of its interval.
template <class Family>
void take_residuals(const Samples<Family>& samples, const FamilyFit& fit, const Context& context,
                    ProfileBlock& block) {
  const std::vector<SampleResidual<Family>> by_gpu = residuals_of(samples, fit);
  const std::vector<SampleResidual<Family>> residuals = medians_over_gpus(by_gpu, context.architecture());
  std::vector<ResidualRow> rows;
  for (const SampleResidual<Family>& r : residuals) rows.push_back(r.row);
  block.kriging = kriging_of(by_gpu);
  // Tables of other GPUs are repeated in many profiles: they are kept short.
  const std::size_t most = block.own ? context.options.most_rows : context.options.most_rows / 3;
  std::vector<ResidualRow> kept;
  for (const std::size_t i : representative_rows(rows, block.kriging.nugget, most)) {
    if (context.options.unlisted.contains(residuals[i].sample->set)) continue;
    kept.push_back({rows[i].at, rows[i].residual, static_cast<int>(block.measured.size())});
    block.measured.push_back(residuals[i].sample->call);
  }
  block.residuals = ResidualTable(std::move(kept));
  block.interval = block.own ? interval_of(block.residuals, rows, block.kriging)
                             : interval_between_gpus(by_gpu, block.kriging);
}

// Key of a fit in FitMemo, whose priors are fits to the samples that follow: family, blocks and GPUs,
// "gemm|cublas8/fp32 gtx1080ti,cublas8/fp32 titanxp,<...".
template <class Family, class... Priors>
std::string memo_key(const Samples<Family>& samples, const Priors&... priors) {
  std::set<std::string> cards;
  for (const Sample<Family>& s : samples) cards.insert(s.block + " " + s.gpu);
  std::string key = std::string(Family::name) + "|";
  for (const std::string& card : cards) key += card + ",";
  if constexpr (sizeof...(priors) > 0) key += "<" + memo_key(priors...);
  return key;
}

// Throws UsageError where a fit did not converge: its parameters mean nothing.
template <class Family>
void require_converged(const FamilyFit& fit, const Samples<Family>& samples) {
  if (fit.converged) return;
  throw UsageError(fmt::format(
      "the fit of {} ({}) to {} records did not converge in {} iterations; {} still moves", Family::name,
      samples.front().block, samples.size(), fit.iterations, Family::parameters[fit.steepest].name));
}

// The fit to samples of one generation. `kin`: the samples of all generations of its library and precision,
// whose parameters are the prior; with no more samples than those of the generation, the family's own.
template <class Family>
FamilyFit fit_of(const Samples<Family>& samples, const Samples<Family>& kin, const Context& context) {
  const std::string key = memo_key(samples, kin);
  FitMemo* const memo = context.options.memo;
  if (memo != nullptr && memo->fits.contains(key)) return memo->fits.at(key);
  FitOptions options = fit_options<Family>(samples, context.clocks);
  options.starts = context.options.starts;
  options.threads = context.options.threads;
  if (kin.size() > samples.size())
    options.parameters = options_around<Family>(fit_of(kin, kin, context)).parameters;
  FamilyFit fit = fit_family<Family>(stratified<Family>(samples, kMostFitted), options);
  require_converged(fit, samples);
  if (memo != nullptr) memo->fits[key] = fit;
  return fit;
}

// The same to `alike` alone, some of the samples: about the fit to all of them.
template <class Family>
FamilyFit fit_of_alike(const Samples<Family>& alike, const Samples<Family>& samples,
                       const Samples<Family>& kin, const Context& context) {
  const FamilyFit shared = fit_of(samples, kin, context);
  if (alike.size() == samples.size()) return shared;
  const std::string key = memo_key(alike, samples, kin);
  FitMemo* const memo = context.options.memo;
  if (memo != nullptr && memo->fits.contains(key)) return memo->fits.at(key);
  FitOptions around = options_around<Family>(shared);
  around.threads = context.options.threads;
  FamilyFit fit = fit_family<Family>(stratified<Family>(alike, kMostFitted), around);
  require_converged(fit, alike);
  if (memo != nullptr) memo->fits[key] = fit;
  return fit;
}

template <class Family>
ProfileBlock own_block(const Samples<Family>& samples, const Samples<Family>& kin, const Context& context) {
  const Samples<Family> own =
      where(samples, [&](const Sample<Family>& s) { return context.is_target(s.gpu); });
  if (own.size() < kFewestSamples) {
    throw UsageError(fmt::format("{} records of {} ({}) on {}; expected at least {} for a fit", own.size(),
                                 Family::name, own.front().block, context.options.gpu, kFewestSamples));
  }
  const FamilyFit fit = fit_of_alike(own, samples, kin, context);
  ProfileBlock block;
  block.own = true;
  take_parameters<Family>(fit, block);
  block.clock = fit.gpus.at(context.options.gpu).sustained.clock;
  block.bandwidth = fit.gpus.at(context.options.gpu).sustained.bandwidth;
  note_records(own, block);
  take_residuals(own, fit, context, block);
  return block;
}

// The block of several GPUs, without a clock. `fit`: the one that `fitted` names.
template <class Family>
ProfileBlock block_of_others(const Samples<Family>& samples, const FamilyFit& fit, const std::string& fitted,
                             const Context& context) {
  const std::string key = fitted + " for " + std::to_string(context.architecture());
  FitMemo* const memo = context.options.memo;
  if (memo != nullptr && memo->blocks.contains(key)) return memo->blocks.at(key);
  ProfileBlock block;
  take_parameters<Family>(fit, block);
  note_records(samples, block);
  take_residuals(samples, fit, context, block);
  if (memo != nullptr) memo->blocks[key] = block;
  return block;
}

template <class Family>
ProfileBlock shared_block(const Samples<Family>& others, const Samples<Family>& kin,
                          const Samples<Family>& target, const Context& context) {
  const Samples<Family> samples = like_target(others, context);
  const FamilyFit fit = fit_of_alike(samples, others, kin, context);
  ProfileBlock block = block_of_others(samples, fit, memo_key(samples, others, kin), context);
  const ClockRatio ratio = clock_ratio(samples, fit, context.clocks, false);
  block.clock = ratio.median;
  block.clock_of_expected = true;
  block.clock_sd = std::max(kClockBetweenBoards, ratio.sd);
  if (!context.options.one_gemm || target.empty()) return block;
  if (const auto anchor = anchor_of(target.front(), context.clocks)) {
    const ClockRatio anchored = clock_ratio(samples, fit, context.clocks, true);
    block.clock = *anchor * anchored.median;
    block.clock_of_expected = false;
    block.clock_sd = std::max(kAnchoredClockSd, anchored.sd);
  }
  return block;
}

// The samples of GPUs like the profile's, or of its architecture; all samples where these are too few for a
// fit. Not all of a GPU's architecture are like it: a P100's products from a P4 alone are 45 % off, from all
// 17 %.
template <class Family>
Samples<Family> like_target(const Samples<Family>& samples, const Context& context) {
  const ProfileFitOptions& options = context.options;
  const Samples<Family> alike =
      options.gpu.empty() ? where(samples,
                                  [&](const Sample<Family>& s) {
                                    return instructions_of(context.gpus.at(s.gpu)) == options.architecture;
                                  })
                          : most_alike(10 * context.gpus.at(options.gpu).compute_capability, samples);
  return alike.size() < kFewestSamples ? samples : alike;
}

template <class Family>
void fit_blocks(std::span<const Record> records, Context& context) {
  const std::set<std::string>& wanted = context.options.families;
  if (!wanted.empty() && !wanted.contains(std::string(Family::name))) return;
  std::map<std::string, Samples<Family>> blocks, kin_of;  // by block; by library and precision
  for (const Sample<Family>& s :
       stratified<Family>(samples_of<Family>(records, context.gpus), context.options.most_samples)) {
    blocks[s.block].push_back(s);
    kin_of[kind_of_block(s.block)].push_back(s);
  }
  for (const auto& [key, samples] : blocks) {
    const auto targets = [&](const Sample<Family>& s) { return context.is_target(s.gpu); };
    const Samples<Family> target = where(samples, targets);
    // Calls of the GPU itself that are too few for a block of its own count among those of GPUs like it.
    const auto seen = [&](const Sample<Family>& s) { return !context.options.without_gpu || !targets(s); };
    const Samples<Family> known = where(samples, seen);
    const bool thin = target.size() < kFewestSamples && !context.options.refuse_thin;
    const bool own = !target.empty() && !thin && !context.options.without_gpu;
    if (!own && known.size() < kFewestSamples) {
      context.too_few.push_back(fmt::format("{} of {} ({})", known.size(), Family::name, key));
      continue;
    }
    if (!context.computes(key)) continue;
    if (context.options.progress) context.options.progress(fmt::format("{} {}", Family::name, key));
    const Samples<Family>& every = kin_of.at(kind_of_block(key));
    ProfileBlock block = own ? own_block<Family>(samples, every, context)
                             : shared_block<Family>(known, where(every, seen), target, context);
    block.generation = key.substr(0, key.find('/'));
    block.math = math_of_block(key);
    context.profile.families[index_of_family<Family>()].push_back(std::move(block));
  }
}

void require_records(std::span<const Record> records, const ProfileFitOptions& options) {
  if (options.gpu.empty() || options.without_gpu) return;
  const bool any =
      std::any_of(records.begin(), records.end(), [&](const Record& r) { return r.gpu == options.gpu; });
  if (!any) throw UsageError("no record is of " + options.gpu + "; expected some, or --without");
}

void require_blocks(const Context& context) {
  for (const auto& blocks : context.profile.families) {
    if (!blocks.empty()) return;
  }
  throw UsageError(
      "too few records for a fit: " +
      (context.too_few.empty() ? "none of a kernel that has a formula" : joined(context.too_few)) +
      "; expected at least " + std::to_string(kFewestSamples) + " of one");
}

std::string title_of(const ProfileFitOptions& options, const GpuSpecs& gpus) {
  if (options.gpu.empty())
    return options.architecture.empty() ? "all measured GPUs" : "measured " + options.architecture + " GPUs";
  const std::string& title = gpus.at(options.gpu).title;
  if (!options.without_gpu) return title + ", measured";
  return options.one_gemm ? title + ", from one matrix product and other GPUs"
                          : title + ", from its data sheet and other GPUs";
}

}  // namespace

Profile fit_profile(std::span<const Record> records, const GpuSpecs& gpus, const ProfileFitOptions& options) {
  require_records(records, options);
  Profile profile;
  profile.title = title_of(options, gpus);
  profile.gpu = options.gpu;
  profile.architecture = options.gpu.empty() ? options.architecture : "";
  if (!options.gpu.empty() && !options.without_gpu) profile.board_power = gpus.at(options.gpu).tdp.si();
  profile.calibrated = true;
  Context context{options, gpus, clock_priors(records, gpus), profile};
#define TBDSIM_FIT(Family) fit_blocks<Family>(records, context);
  TBDSIM_FOR_EACH_FAMILY(TBDSIM_FIT)
#undef TBDSIM_FIT
  if (options.families.empty()) require_blocks(context);
  profile.sources["families"] = "fitted to records";
  return profile;
}

}  // namespace tbdsim
