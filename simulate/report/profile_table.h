// The blocks of a profile, what each was fitted to and how well: `tbd-sim show profile NAME`.
#pragma once

#include "costmodel/profile/profile.h"
#include "hwspecs/base/table.h"

namespace tbdsim {

// A row for each block: family, library version, precision, number of records, where they were measured,
// how many of its parameters they determine, and which are at a bound.
[[nodiscard]] Table profile_table(const Profile& profile);

}  // namespace tbdsim
