#include "calibrate/measure/device/session.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <utility>

namespace tbdsim::measure {
namespace {
constexpr std::size_t kFlushedL2s = 4;  // the caches' hashing leaves nothing of the old data
constexpr std::size_t kLeastFlush = std::size_t{16}
                                    << 20U;  // assumed where the driver does not report the size
constexpr std::size_t kPackBytes = 16;

std::string gigabytes(std::size_t bytes) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.2f GB", static_cast<double>(bytes) / 1e9);
  return text.data();
}
}  // namespace

DeviceBuffer::DeviceBuffer(std::size_t bytes) : bytes_(bytes) {
  // A multiple of 16 bytes and never empty: the kernels read 16 bytes at a time.
  const std::size_t whole = std::max(kPackBytes, (bytes + kPackBytes - 1) / kPackBytes * kPackBytes);
  const cudaError_t status = cudaMalloc(&data_, whole);
  if (status == cudaSuccess) return;
  static_cast<void>(cudaGetLastError());
  if (status != cudaErrorMemoryAllocation) check(status, "cudaMalloc");
  throw PointError("needs " + gigabytes(bytes) + " of device memory at once, " +
                   gigabytes(Session::free_memory()) + " are free");
}

DeviceBuffer::~DeviceBuffer() {
  if (data_ != nullptr) static_cast<void>(cudaFree(data_));
}

DeviceBuffer::DeviceBuffer(DeviceBuffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}

DeviceBuffer& DeviceBuffer::operator=(DeviceBuffer&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

Session::Session(const Device& gpu, std::uint64_t seed)
    : device(gpu),
      versions(measure::versions()),
      nvml(gpu.pci_bus_id),
      tracer(gpu.ordinal),
      flush_(std::max(kLeastFlush, kFlushedL2s * gpu.l2_bytes)),
      seed_(seed) {
  conditions = nvml.read();
}

cublasHandle_t Session::blas() {
  if (!blas_) {
    blas_ = std::make_unique<BlasHandle>();
    check(cublasSetStream(blas_->get(), stream()), "cublasSetStream");
  }
  return blas_->get();
}

cudnnHandle_t Session::dnn() {
  if (!dnn_) {
    dnn_ = std::make_unique<DnnHandle>();
    check(cudnnSetStream(dnn_->get(), stream()), "cudnnSetStream");
  }
  return dnn_->get();
}

cudaEvent_t Session::event(std::size_t i) {
  while (events_.size() <= i) events_.emplace_back();
  return events_[i].get();
}

void Session::read_conditions() {
  constexpr auto kBetween = std::chrono::milliseconds(50);
  const auto now = std::chrono::steady_clock::now();
  if (!nvml.fast() || now - conditions_at_ < kBetween) return;
  conditions_at_ = now;
  conditions = nvml.read();
}

void Session::flush() {
  check(launch_flush(stream(), flush_.get(), flush_.bytes() / kPackBytes * kPackBytes), "cache flush");
}

std::size_t Session::free_memory() {
  std::size_t free = 0;
  std::size_t total = 0;
  check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  return free;
}

DeviceBuffer Session::random(Type type, std::int64_t n, float deviation) {
  DeviceBuffer buffer(static_cast<std::size_t>(n) * bytes_of(type));
  check(launch_fill(stream(), type, buffer.get(), n, deviation, ++seed_), "random inputs");
  return buffer;
}

Type type_of(const std::string& precision) {
  return precision == "fp16" ? Type::f16 : precision == "bf16" ? Type::bf16 : Type::f32;
}

std::size_t bytes_of(Type type) { return type == Type::f32 ? sizeof(float) : sizeof(std::uint16_t); }

}  // namespace tbdsim::measure
