#include "simulate/memory/driver_memory.h"

#include <cmath>

namespace tbdsim {

Bytes driver_page(const GpuSpec& gpu) {
  constexpr double kPascal = 6;  // compute capability
  constexpr Bytes kPage(2U << 20U);
  return gpu.compute_capability >= kPascal ? kPage : Bytes();
}

Bytes cublas_workspace(const GpuSpec& gpu) {
  constexpr double kHopper = 9, kAfterBlackwell = 11;  // compute capabilities; GeForce's Blackwell is 12
  constexpr double kMegabyte = 1U << 20U;
  const bool large = gpu.compute_capability >= kHopper && gpu.compute_capability < kAfterBlackwell;
  return Bytes(large ? 32 * kMegabyte : 8.125 * kMegabyte);
}

Bytes from_driver(Bytes bytes, Bytes page) {
  constexpr Bytes kAlignment(512);
  if (page == Bytes() || bytes == Bytes()) return bytes;
  const Bytes slab = page * 0.5;
  const Bytes aligned = kAlignment * std::ceil(bytes / kAlignment);
  if (aligned > slab) return page * std::ceil(bytes / page);
  return slab * (1 / std::floor(slab / aligned));
}

}  // namespace tbdsim
