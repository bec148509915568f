// Writes a fit as a report and into a framework's file.
#pragma once

#include <iosfwd>
#include <string>

#include "calibrate/framework_fit/errors.h"

namespace tbdsim {

// Tables of the fitted constants with their standard errors, the factors of the GPUs and the errors;
// `details`: also the error of each row.
void write_fit_report(std::ostream& out, const Framework& framework, const RunRows& rows,
                      const FrameworkFit& fit, const FitErrors& errors, bool details);

// Returns the text of the framework's file with the constants that the runs determine, and their sources, set
// in place. Throws SpecError where the text cannot be changed in place.
[[nodiscard]] std::string with_fitted_constants(std::string yaml, const std::string& file,
                                                const RunRows& rows, const FrameworkFit& fit,
                                                const FitErrors& errors);

}  // namespace tbdsim
