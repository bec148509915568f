// How far off predicted times to a target are, as a table: `tbd-sim validate --tta`.
#pragma once

#include "hwspecs/base/table.h"
#include "simulate/validation/tta_submissions.h"

namespace tbdsim {

[[nodiscard]] Table tta_validation_table(const SubmissionValidation& validation, const SuiteRules& rules);

}  // namespace tbdsim
