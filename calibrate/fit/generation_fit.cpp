#include "calibrate/fit/generation_fit.h"

#include <algorithm>

#include "costmodel/families/families.h"

namespace tbdsim {
namespace {

// Standard deviations of the logarithms of a GPU's parameters and clock about those of its generation.
constexpr double kOwnParameterSd = 0.25;
constexpr double kOwnClockSd = 0.03;

}  // namespace

template <class Family>
FitOptions fit_options(const Samples<Family>& samples, const ClockPriors& clocks) {
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

#define TBDSIM_INSTANTIATE(Family)                                                     \
  template FitOptions fit_options<Family>(const Samples<Family>&, const ClockPriors&); \
  template FitOptions options_around<Family>(const FamilyFit&);                        \
  template FamilyFit fit_with_generations<Family>(const Samples<Family>&, const Samples<Family>&, FitOptions);
TBDSIM_FOR_EACH_FAMILY(TBDSIM_INSTANTIATE)
#undef TBDSIM_INSTANTIATE

}  // namespace tbdsim
