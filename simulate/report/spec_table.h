// A file of the catalogue as a table: every key, its value, its source. `tbd-sim show titanxp`.
#pragma once

#include <optional>
#include <string>

#include "hwspecs/base/catalog.h"
#include "hwspecs/base/table.h"
#include "hwspecs/gpu_spec.h"

namespace tbdsim {

// The kind of which the catalogue has that name, models first; none where no kind has it.
[[nodiscard]] std::optional<Kind> kind_of(const Catalog& catalog, const std::string& name);

// Throws UsageError for a name the catalogue does not have, and what reading its file throws.
[[nodiscard]] Table spec_table(const Catalog& catalog, Kind kind, const std::string& name);

// A GPU's file, with `memory_size` as "14.58 GiB usable of 16 GiB" and a row for the usable memory where a
// rule gives it.
[[nodiscard]] Table gpu_table(const Catalog& catalog, const GpuSpec& gpu);

}  // namespace tbdsim
