// The data sheet as the time formulas need it, and what a card is expected to sustain of it.
#pragma once

#include "costmodel/kernel_time.h"
#include "hwspecs/base/math_type.h"
#include "hwspecs/gpu_spec.h"

namespace tbdsim {

// Rates for one kind of arithmetic, through `computes_in`. Throws UsageError when the card has neither.
[[nodiscard]] Hardware hardware_of(const GpuSpec& gpu, MathType math);

// Log-normal: ln x ~ N(ln mean, sd). sd 0: held.
struct Prior {
  double mean = 1;
  double sd = 0.1;
};

// The share of the quoted peak that large matrix products of an unmeasured card reach. Cards of 150 W and
// more from Pascal on: 0.92 (0.78-0.99 measured). Power holds the others: min(0.92, eta x W / peak) with eta
// of 57 GFLOP/J (Maxwell, Pascal, Turing), 77 (Volta, Ampere, Hopper) or 126 (Ada; Blackwell is taken as
// Ada), from a T4, a P4 and an L4. Kepler: 0.55. Source: the study of DeepBench and NeuSight tables, "Rule
// for an unseen GPU".
[[nodiscard]] Prior expected_clock(const GpuSpec& gpu);

}  // namespace tbdsim
