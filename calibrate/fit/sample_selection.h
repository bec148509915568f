// The samples to which a prediction for an unmeasured GPU is fitted.
#pragma once

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "calibrate/samples/sample.h"

namespace tbdsim {

template <class Family>
using Samples = std::vector<Sample<Family>>;

// Copies of the samples for which keep(sample) is true, in order.
template <class Family, class Keep>
[[nodiscard]] Samples<Family> where(const Samples<Family>& samples, Keep keep) {
  Samples<Family> kept;
  std::copy_if(samples.begin(), samples.end(), std::back_inserter(kept), keep);
  return kept;
}

// "cudnn6/fp32" -> fp32.
[[nodiscard]] std::string precision_of(std::string_view block);

// The major compute capability.
[[nodiscard]] inline int architecture_of(const Hardware& hardware) {
  return static_cast<int>(hardware.compute_capability / 10);
}

// The samples of other GPUs of the library generation nearest to that of `held_out`, of the same library and
// precision. Generations are as far apart as their versions, and by 2 more where none of their GPUs has the
// architecture of held_out's, because libraries choose other kernels there.
template <class Family>
[[nodiscard]] Samples<Family> same_architecture(const Sample<Family>& held_out, const Samples<Family>& all);

// The samples of GPUs with the same SMs, of this compute capability times ten; all samples where there are
// none, and where more than half of the GPUs have these SMs: medians over all of three and more ignore one
// that differs from all others (TITAN X Pascal with an early CUDA 8 in DeepBench).
template <class Family>
[[nodiscard]] Samples<Family> most_alike(double compute_capability, const Samples<Family>& samples);

// The samples of other GPUs of the same library and precision, in any generation.
template <class Family>
[[nodiscard]] Samples<Family> other_gpus(const Sample<Family>& held_out, const Samples<Family>& all);

// The samples of the library generation or GPU architecture of `held_out`, whose residuals are the most
// similar.
template <class Family>
[[nodiscard]] Samples<Family> informative(const Sample<Family>& held_out, const Samples<Family>& samples);

}  // namespace tbdsim
