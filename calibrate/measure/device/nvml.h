// Clocks, power limit, temperature and driver version. libnvidia-ml is opened at run time, since the CUDA
// toolkit does not always contain it and a machine without a driver has none. Without it nvidia-smi is run;
// without either the record's fields are empty.
#pragma once

#include <string>

namespace tbdsim::measure {

struct Conditions {
  double sm_clock_hz = 0;
  double memory_clock_hz = 0;
  double power_limit_w = 0;
  double temperature_c = 0;
  std::string driver;
};

class Nvml {
 public:
  explicit Nvml(std::string pci_bus_id);
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  // Where the numbers come from: "NVML", "nvidia-smi" or "none".
  [[nodiscard]] const char* origin() const;
  // The present values. nvidia-smi takes a tenth of a second: call this between points.
  [[nodiscard]] Conditions read() const;
  // True when read() takes microseconds and may be called while kernels run.
  [[nodiscard]] bool fast() const { return device_ != nullptr; }

 private:
  template <class Function>
  Function function(const char* name) const;
  [[nodiscard]] double clock_hz(unsigned type) const;
  void open();

  std::string pci_bus_id_;
  void* library_ = nullptr;
  void* device_ = nullptr;  // nvmlDevice_t
  bool smi_ = false;
  Conditions fixed_;  // driver and power limit, read once
};

// One line of `nvidia-smi --query-gpu=clocks.sm,clocks.mem,power.limit,temperature.gpu,driver_version
// --format=csv,noheader,nounits`, in MHz, W and degrees; "[N/A]" stays 0.
[[nodiscard]] Conditions parse_smi(const std::string& line);

}  // namespace tbdsim::measure
