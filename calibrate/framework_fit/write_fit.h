// A fit, for people and as a framework's file.
#pragma once

#include <iosfwd>
#include <string>

#include "calibrate/framework_fit/errors.h"

namespace tbdsim {

// What was fitted, how well it is known, and the errors; `details`: also each row's.
void write_fit_report(std::ostream& out, const Framework& framework, const RunRows& rows,
                      const FrameworkFit& fit, const FitErrors& errors, bool details);

// The text of the framework's file with the constants that the runs told, and where they are from, in place.
// Throws SpecError where the text cannot be changed in place.
[[nodiscard]] std::string with_fitted_constants(std::string yaml, const std::string& file,
                                                const RunRows& rows, const FrameworkFit& fit,
                                                const FitErrors& errors);

}  // namespace tbdsim
