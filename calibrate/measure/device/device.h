// The GPU and the versions of its driver and libraries.
#pragma once

#include <cstddef>
#include <string>

#include "calibrate/measure/plan/work.h"

namespace tbdsim::measure {

struct Device {
  int ordinal = 0;
  std::string name;
  std::string pci_bus_id;    // "0000:3b:00.0": identifies the same GPU for NVML
  int major = 0, minor = 0;  // compute capability
  int sm_count = 0;
  double clock_hz = 0;  // boost
  double memory_clock_hz = 0;
  int bus_bits = 0;
  std::size_t l2_bytes = 0;
  std::size_t memory_bytes = 0;
};

struct Versions {
  std::string cuda, cudnn, cublas;  // "13.0", "9.19.0", "13.1.0": of the libraries loaded
  std::string driver_api;           // newest CUDA version that the driver supports
  int cublas_major = 0, cudnn_major = 0, cuda_major = 0, nccl_major = 0;
};

// Number of CUDA devices; 0 with the reason in `why` when there is no driver, no device, or it is too old.
[[nodiscard]] int device_count(std::string& why);
// Throws PointError when the device cannot be queried.
[[nodiscard]] Device describe(int ordinal);
[[nodiscard]] Versions versions();

// Peak rates for planning, from the clocks and the lanes per SM of the architecture.
[[nodiscard]] GpuRates rates_of(const Device& device);

// The record's generation of an op's library: cublas13, cudnn9, nccl2, cuda13; own kernels: own.
[[nodiscard]] std::string generation_of(const std::string& library, const Versions& versions);

}  // namespace tbdsim::measure
