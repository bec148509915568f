// Kernel x GPU x profile -> time, with its whole breakdown. Pure functions.
#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "costmodel/profile.h"
#include "graphs/training_step.h"
#include "hwspecs/base/quantity.h"
#include "hwspecs/gpu_spec.h"

namespace tbdsim {

enum class Bound { compute, memory, overhead };
inline constexpr std::array<std::string_view, 3> kBoundNames = {"compute", "memory", "overhead"};

// Where a number comes from, from surest to least sure.
enum class Provenance { measured, interpolated, transferred, modelled, roofline };
inline constexpr std::array<std::string_view, 5> kProvenanceNames = {"measured", "interpolated",
                                                                     "transferred", "modelled", "roofline"};

[[nodiscard]] constexpr std::string_view name_of(Bound bound) {
  return kBoundNames[static_cast<std::size_t>(bound)];
}
[[nodiscard]] constexpr std::string_view name_of(Provenance provenance) {
  return kProvenanceNames[static_cast<std::size_t>(provenance)];
}

// Of one execution of a kernel.
struct KernelCost {
  Seconds compute;   // if only arithmetic limited it
  Seconds memory;    // if only bandwidth limited it; of transfers, the bus
  Seconds overhead;  // launch and start-up
  Seconds total;     // overhead + max(compute, memory)
  Bound bound = Bound::overhead;
  Provenance provenance = Provenance::roofline;
};

// Throws UsageError when the GPU has no rate for the kernel's arithmetic.
[[nodiscard]] KernelCost estimate(const Kernel& kernel, double batch, const GpuSpec& gpu,
                                  const Profile& profile);

// One cost for each kernel of the step.
[[nodiscard]] std::vector<KernelCost> estimate(const TrainingStep& step, double batch, const GpuSpec& gpu,
                                               const Profile& profile);

}  // namespace tbdsim
