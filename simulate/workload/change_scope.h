// The files that a change of a spec is for.
#pragma once

#include "hwspecs/base/catalog.h"
#include "hwspecs/base/spec_change.h"

namespace tbdsim {

// The changes with `only` set where a path begins with the name of a file of its spec, or with a kind of
// links: "link.pcie3.bandwidth=x2", "gpu.t4.price_per_hour=0.4 USD/h". Throws UsageError for an unknown spec.
[[nodiscard]] SpecChanges scoped(SpecChanges changes, const Catalog& catalog);

}  // namespace tbdsim
