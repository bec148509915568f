// The convergence of a model to the target that a user means.
#pragma once

#include <string>

#include "graphs/convergence.h"
#include "hwspecs/base/catalog.h"

namespace tbdsim {

// That of the file of the catalogue whose model has this name and whose target is called so, of the usual
// target of the model for kUsualTarget (the only one where it has one), or of a file given by its path.
// Throws UsageError, which names the targets there are for the model, or SpecError.
[[nodiscard]] Convergence find_convergence(const std::string& model, const std::string& target,
                                           const Catalog& catalog);

}  // namespace tbdsim
