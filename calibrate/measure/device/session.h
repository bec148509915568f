// Everything a measuring run holds: the device, its stream, library handles, the tracer, and what it costs to
// time.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "calibrate/measure/device/activity.h"
#include "calibrate/measure/device/cuda_check.h"
#include "calibrate/measure/device/device.h"
#include "calibrate/measure/device/nvml.h"
#include "calibrate/measure/kernels/kernels.h"

namespace tbdsim::measure {

// Device memory, owned. Throws PointError "needs 12.3 GB of device memory, 8.0 GB are free" when there is too
// little.
class DeviceBuffer {
 public:
  DeviceBuffer() = default;
  explicit DeviceBuffer(std::size_t bytes);
  ~DeviceBuffer();
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;
  DeviceBuffer(DeviceBuffer&& other) noexcept;
  DeviceBuffer& operator=(DeviceBuffer&& other) noexcept;

  [[nodiscard]] void* get() const { return data_; }
  template <class T>
  [[nodiscard]] T* as() const {
    return static_cast<T*>(data_);
  }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }

 private:
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
};

class Session {
 public:
  Session(const Device& device, std::uint64_t seed);

  const Device device;
  const Versions versions;
  Nvml nvml;
  Tracer tracer;
  Conditions conditions;  // at the last read_conditions()

  [[nodiscard]] cudaStream_t stream() const { return stream_.get(); }
  // Made on first use, bound to stream(): a library that cannot start fails its own points only.
  [[nodiscard]] cublasHandle_t blas();
  [[nodiscard]] cudnnHandle_t dnn();
  // Event pairs around call number i of a burst.
  [[nodiscard]] cudaEvent_t begin(int i) { return event(2 * static_cast<std::size_t>(i)); }
  [[nodiscard]] cudaEvent_t end(int i) { return event(2 * static_cast<std::size_t>(i) + 1); }

  // Reads clocks and temperature where that takes microseconds, at most twenty times a second.
  void read_conditions();
  // Overwrites four times the L2 cache.
  void flush();
  // Bytes that can be allocated now.
  [[nodiscard]] static std::size_t free_memory();
  // A buffer of n random normal elements; a new seed each time.
  [[nodiscard]] DeviceBuffer random(Type type, std::int64_t n, float deviation = 1.0F);

 private:
  [[nodiscard]] cudaEvent_t event(std::size_t i);

  Stream stream_;
  std::unique_ptr<BlasHandle> blas_;
  std::unique_ptr<DnnHandle> dnn_;
  std::vector<Event> events_;
  DeviceBuffer flush_;
  std::chrono::steady_clock::time_point conditions_at_{};
  std::uint64_t seed_;
};

[[nodiscard]] Type type_of(const std::string& precision);
[[nodiscard]] std::size_t bytes_of(Type type);

}  // namespace tbdsim::measure
