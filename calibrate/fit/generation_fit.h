// Fits of several GPUs whose results are the priors of other fits.
#pragma once

#include "calibrate/fit/clock_priors.h"
#include "calibrate/fit/family_fit.h"
#include "calibrate/fit/sample_selection.h"

namespace tbdsim {

// Options of a fit to samples of several GPUs: the priors of their clocks.
template <class Family>
[[nodiscard]] FitOptions fit_options(const Samples<Family>& samples, const ClockPriors& clocks);

// Options of a fit to the samples of one GPU: parameters and clocks have those of its generation as priors.
template <class Family>
[[nodiscard]] FitOptions options_around(const FamilyFit& shared);

// A fit to samples of one generation, with a fit to the samples of all generations as the prior of its
// parameters.
template <class Family>
[[nodiscard]] FamilyFit fit_with_generations(const Samples<Family>& samples, const Samples<Family>& all,
                                             FitOptions options);

}  // namespace tbdsim
