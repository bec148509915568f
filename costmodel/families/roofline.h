// The roofline (Williams, Waterman and Patterson, CACM 52(4), 2009): a kernel computes or moves data,
// whichever takes longer.
//
//   time = overhead + max(flops / (compute_efficiency * peak), bytes / (bandwidth_efficiency * bandwidth))
//
// Templated on the scalar: predict with double, fit with an automatic-differentiation type.
#pragma once

namespace tbdsim {

template <class T>
struct Efficiency {
  T compute;     // fraction of the peak, kernels of a kind at best
  T bandwidth;   // fraction of the memory bandwidth
  T overhead_s;  // seconds added to each kernel
};

template <class T>
struct RooflineTime {
  T compute_s;
  T memory_s;
  T total_s;
};

template <class T>
[[nodiscard]] RooflineTime<T> roofline(double flops, double peak_flops_per_s, double bytes,
                                       double bandwidth_bytes_per_s, const Efficiency<T>& efficiency) {
  const T compute = flops / (peak_flops_per_s * efficiency.compute);
  const T memory = bytes / (bandwidth_bytes_per_s * efficiency.bandwidth);
  return {compute, memory, efficiency.overhead_s + (compute > memory ? compute : memory)};
}

}  // namespace tbdsim
