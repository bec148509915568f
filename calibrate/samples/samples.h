// Records -> samples of a family.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "calibrate/records/record.h"
#include "calibrate/samples/sample.h"
#include "hwspecs/gpu_spec.h"

namespace tbdsim {

using GpuSpecs = std::map<std::string, GpuSpec>;  // by stem

// The records of the family's calls; `gpu` of each must be a key of `gpus` (UsageError otherwise). Records in
// arithmetic that the GPU lacks are left out.
template <class Family>
[[nodiscard]] std::vector<Sample<Family>> samples_of(std::span<const Record> records, const GpuSpecs& gpus);

// At most `most` of each GPU and block, spread evenly over the work: sorted by flops, every n-th.
template <class Family>
[[nodiscard]] std::vector<Sample<Family>> stratified(std::vector<Sample<Family>> samples, std::size_t most);

}  // namespace tbdsim
