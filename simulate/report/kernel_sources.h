// Where kernel times come from, by version of the library that was measured.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "simulate/prediction/prediction.h"

namespace tbdsim {

// The part of the profile behind one kernel's time.
struct KernelSource {
  std::string library;       // with its version, "cudnn6"; empty: the roofline
  bool on_this_gpu = false;  // measured on the GPU of the prediction; else on others
};
[[nodiscard]] KernelSource source_of(const Prediction& prediction, const Iteration& iteration,
                                     std::size_t kernel);

// The sources of all kernels of the predictions' typical iterations: "cublas8, cudnn6 measured on this GPU;
// cudnn7 from other GPUs". A library with kernels from both sources is named twice.
[[nodiscard]] std::string kernel_sources(std::span<const Prediction> predictions);

}  // namespace tbdsim
