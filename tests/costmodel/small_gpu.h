// A GPU and a profile with numbers made for mental arithmetic.
#pragma once

#include "costmodel/estimate.h"
#include "costmodel/families/families.h"
#include "costmodel/profile/profile.h"

namespace tbdsim::test {

[[nodiscard]] inline MathRate rate(double flops_per_s) {
  MathRate made;
  made.peak = FlopsPerSecond(flops_per_s);
  return made;
}

// 1000 flop/s in fp32, 4000 in fp16, 100 B/s, an L2 that holds all operands; no tf32, bf16 or fp8.
[[nodiscard]] inline GpuSpec small_gpu() {
  GpuSpec gpu;
  gpu.name = "small";
  gpu.title = "Small GPU";
  gpu.math[index_of(MathType::fp32)] = rate(1000);
  gpu.math[index_of(MathType::fp16)] = rate(4000);
  gpu.memory_bandwidth = BytesPerSecond(100);
  gpu.memory_size = Bytes(1000);
  gpu.usable_memory = Bytes(990);
  gpu.l2_size = Bytes(10'000);
  return gpu;
}

// Half the peak, a quarter of the bandwidth, 2 s of start-up, for kernels of every kind.
[[nodiscard]] inline Profile small_profile() {
  Profile profile;
  profile.name = "small";
  profile.kinds.fill({.compute = 0.5, .bandwidth = 0.25, .overhead_s = 2});
  return profile;
}

}  // namespace tbdsim::test
