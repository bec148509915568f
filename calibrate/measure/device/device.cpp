#include "calibrate/measure/device/device.h"

#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <cudnn.h>
#ifdef TBDSIM_HAVE_NCCL
#include <nccl.h>
#endif

#include <algorithm>
#include <array>

#include "calibrate/measure/device/cuda_check.h"

namespace tbdsim::measure {
namespace {
int attribute(cudaDeviceAttr which, int ordinal) {
  int value = 0;
  check(cudaDeviceGetAttribute(&value, which, ordinal), "cudaDeviceGetAttribute");
  return value;
}

// FP32 lanes per SM: CUDA C++ Programming Guide, "Arithmetic Instructions", results per clock cycle.
double lanes_per_sm(int major, int minor) {
  if (major == 6 && minor == 0) return 64;
  if (major == 7) return 64;
  if (major == 8 && minor == 0) return 64;
  return major == 3 ? 192 : 128;
}

// CUDA counts versions as 1000 * major + 10 * minor.
std::string cuda_text(int version) {
  return std::to_string(version / 1000) + '.' + std::to_string(version % 1000 / 10);
}

// cuDNN 9 counts 10000 * major + 100 * minor + patch, cuDNN 8 and older 1000 * major.
std::string cudnn_text(std::size_t version, int& major) {
  const std::size_t unit = version >= 90000 ? 10000 : 1000;
  major = static_cast<int>(version / unit);
  return std::to_string(major) + '.' + std::to_string(version % unit / 100) + '.' +
         std::to_string(version % 100);
}
}  // namespace

int device_count(std::string& why) {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status != cudaSuccess) {
    why = cudaGetErrorString(status);
    static_cast<void>(cudaGetLastError());
    return 0;
  }
  if (count == 0) why = "the driver lists no device";
  return count;
}

Device describe(int ordinal) {
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, ordinal), "cudaGetDeviceProperties");
  std::array<char, 32> bus{};
  check(cudaDeviceGetPCIBusId(bus.data(), static_cast<int>(bus.size()), ordinal), "cudaDeviceGetPCIBusId");
  constexpr double kKilohertz = 1e3;
  // Clocks as attributes: the fields of cudaDeviceProp are gone in CUDA 13.
  return {.ordinal = ordinal,
          .name = properties.name,
          .pci_bus_id = bus.data(),
          .major = properties.major,
          .minor = properties.minor,
          .sm_count = properties.multiProcessorCount,
          .clock_hz = kKilohertz * attribute(cudaDevAttrClockRate, ordinal),
          .memory_clock_hz = kKilohertz * attribute(cudaDevAttrMemoryClockRate, ordinal),
          .bus_bits = attribute(cudaDevAttrGlobalMemoryBusWidth, ordinal),
          .l2_bytes = static_cast<std::size_t>(std::max(properties.l2CacheSize, 0)),
          .memory_bytes = properties.totalGlobalMem};
}

Versions versions() {
  Versions v;
  int runtime = 0;
  int driver = 0;
  check(cudaRuntimeGetVersion(&runtime), "cudaRuntimeGetVersion");
  check(cudaDriverGetVersion(&driver), "cudaDriverGetVersion");
  v.cuda = cuda_text(runtime);
  v.cuda_major = runtime / 1000;
  v.driver_api = cuda_text(driver);
  v.cudnn = cudnn_text(cudnnGetVersion(), v.cudnn_major);
  int minor = 0;
  int patch = 0;
  check(cublasGetProperty(MAJOR_VERSION, &v.cublas_major), "cublasGetProperty");
  check(cublasGetProperty(MINOR_VERSION, &minor), "cublasGetProperty");
  check(cublasGetProperty(PATCH_LEVEL, &patch), "cublasGetProperty");
  v.cublas = std::to_string(v.cublas_major) + '.' + std::to_string(minor) + '.' + std::to_string(patch);
#ifdef TBDSIM_HAVE_NCCL
  v.nccl_major = NCCL_MAJOR;
#endif
  return v;
}

GpuRates rates_of(const Device& d) {
  GpuRates rates;
  constexpr double kBitsPerByte = 8;
  constexpr double kTransfersPerClock = 2;  // double data rate
  rates.fp32_flop_per_s = 2.0 * d.sm_count * lanes_per_sm(d.major, d.minor) * d.clock_hz;
  rates.bytes_per_s = kTransfersPerClock * d.memory_clock_hz * d.bus_bits / kBitsPerByte;
  rates.l2_bytes = static_cast<double>(d.l2_bytes);
  const GpuRates fallback;
  if (!(rates.fp32_flop_per_s > 0))
    rates.fp32_flop_per_s = fallback.fp32_flop_per_s;  // hidden in some containers
  if (!(rates.bytes_per_s > 0)) rates.bytes_per_s = fallback.bytes_per_s;
  return rates;
}

std::string generation_of(const std::string& library, const Versions& v) {
  if (library == "cublas") return library + std::to_string(v.cublas_major);
  if (library == "cudnn") return library + std::to_string(v.cudnn_major);
  if (library == "nccl") return library + std::to_string(v.nccl_major);
  if (library == "cuda") return library + std::to_string(v.cuda_major);
  return library;
}

}  // namespace tbdsim::measure
