// The time of one execution of a kernel with its breakdown: what the cost model returns.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <string_view>

#include "costmodel/families/kernel_time.h"
#include "hwspecs/base/math_type.h"
#include "hwspecs/base/quantity.h"

namespace tbdsim {

enum class Bound : std::uint8_t { compute, memory, overhead };
inline constexpr std::array<std::string_view, 3> kBoundNames = {"compute", "memory", "overhead"};

// Origin of a kernel's time, from the most to the least certain.
//   measured      this call was timed on this GPU
//   interpolated  calls like it were timed on this GPU
//   transferred   it, or calls like it, were timed on other GPUs
//   modelled      formulas fitted to measured calls, none of them like it
//   roofline      round efficiencies
enum class Provenance : std::uint8_t { measured, interpolated, transferred, modelled, roofline };
inline constexpr std::array<std::string_view, 5> kProvenanceNames = {"measured", "interpolated",
                                                                     "transferred", "modelled", "roofline"};

[[nodiscard]] constexpr std::string_view name_of(Bound bound) {
  return kBoundNames[static_cast<std::size_t>(bound)];
}
[[nodiscard]] constexpr std::string_view name_of(Provenance provenance) {
  return kProvenanceNames[static_cast<std::size_t>(provenance)];
}

// The central 80 % of a normal distribution lie within this many standard deviations of its mean.
inline constexpr double kEightyPercent = 1.2816;

// One execution of a kernel. 64 bytes, a line of the processor's cache.
struct KernelCost {
  Seconds compute;      // if only arithmetic limited it
  Seconds memory;       // if only bandwidth limited it; of transfers, the bus
  Seconds overhead;     // launch and start-up
  Seconds total;        // at least each of them
  Bytes workspace;      // its scratch memory
  double residual = 0;  // ln(measured / formula) estimated from measured calls; the times include it
  double sd = 0;        // standard deviation of ln(measured / total)
  Bound bound = Bound::overhead;
  Provenance provenance = Provenance::roofline;
  Algorithm algorithm = Algorithm::none;  // the one that the library is expected to choose
  MathType math = MathType::fp32;  // its arithmetic: the kernel's, or fp32 instead of TF32 (estimate())

  // False for a layout conversion that is not needed: its time is 0. All other times are above 0.
  [[nodiscard]] bool runs() const { return total > Seconds(0); }
  // 80 % of measured times are expected between total / factor() and total * factor().
  [[nodiscard]] double factor() const { return std::exp(kEightyPercent * sd); }
};

// Multiplies all its times.
inline void scale(KernelCost& cost, double factor) {
  for (Seconds* time : {&cost.compute, &cost.memory, &cost.overhead, &cost.total}) *time = *time * factor;
}

}  // namespace tbdsim
