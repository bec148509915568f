// The part of a profile from which a kernel's time comes.
#pragma once

#include "costmodel/calibration.h"
#include "graphs/kernel.h"

namespace tbdsim {

// The model of the kernel's family in the arithmetic it is computed in (KernelCost::math); null where its
// time comes from the roofline.
[[nodiscard]] const FamilyModel* model_of_kernel(const Kernel& kernel, double batch, MathType math,
                                                 const Calibration& calibration);

}  // namespace tbdsim
