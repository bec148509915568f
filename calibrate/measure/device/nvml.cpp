#include "calibrate/measure/device/nvml.h"

#include <array>
#include <cstdio>
#include <memory>

#include <dlfcn.h>

namespace tbdsim::measure {
namespace {
// From nvml.h (NVML API reference): every function returns 0 on success.
constexpr int kSuccess = 0;
constexpr unsigned kSmClock = 1;
constexpr unsigned kMemoryClock = 2;
constexpr unsigned kGpuTemperature = 0;
constexpr double kMegahertz = 1e6;
constexpr double kMilliwatt = 1e-3;

std::string smi_line(const std::string& pci_bus_id) {
  for (const char c : pci_bus_id) {
    if (std::string_view("0123456789abcdefABCDEF:.").find(c) == std::string_view::npos)
      return "";  // goes to a shell
  }
  const std::string command = "nvidia-smi --id=" + pci_bus_id +
                              " --query-gpu=clocks.sm,clocks.mem,power.limit,temperature.gpu,driver_version"
                              " --format=csv,noheader,nounits 2>/dev/null";
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen(command.c_str(), "r"), ::pclose);
  std::array<char, 256> line{};
  if (!pipe || std::fgets(line.data(), static_cast<int>(line.size()), pipe.get()) == nullptr) return "";
  return line.data();
}
}  // namespace

template <class Function>
Function Nvml::function(const char* name) const {
  return reinterpret_cast<Function>(::dlsym(library_, name));
}

Nvml::Nvml(std::string pci_bus_id) : pci_bus_id_(std::move(pci_bus_id)) {
  open();
  if (device_ != nullptr) return;
  fixed_ = parse_smi(smi_line(pci_bus_id_));
  smi_ = !fixed_.driver.empty();
}

Nvml::~Nvml() {
  if (library_ == nullptr) return;
  if (const auto shutdown = function<int (*)()>("nvmlShutdown")) static_cast<void>(shutdown());
  ::dlclose(library_);
}

void Nvml::open() {
  library_ = ::dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library_ == nullptr) return;
  const auto init = function<int (*)()>("nvmlInit_v2");
  const auto find = function<int (*)(const char*, void**)>("nvmlDeviceGetHandleByPciBusId_v2");
  if (init == nullptr || find == nullptr || init() != kSuccess) return;
  if (find(pci_bus_id_.c_str(), &device_) != kSuccess) device_ = nullptr;
  if (device_ == nullptr) return;
  std::array<char, 96> text{};
  const auto driver = function<int (*)(char*, unsigned)>("nvmlSystemGetDriverVersion");
  if (driver != nullptr && driver(text.data(), static_cast<unsigned>(text.size())) == kSuccess)
    fixed_.driver = text.data();
  unsigned milliwatts = 0;
  const auto limit = function<int (*)(void*, unsigned*)>("nvmlDeviceGetEnforcedPowerLimit");
  if (limit != nullptr && limit(device_, &milliwatts) == kSuccess)
    fixed_.power_limit_w = milliwatts * kMilliwatt;
}

const char* Nvml::origin() const { return device_ != nullptr ? "NVML" : smi_ ? "nvidia-smi" : "none"; }

double Nvml::clock_hz(unsigned type) const {
  unsigned megahertz = 0;
  const auto clock = function<int (*)(void*, unsigned, unsigned*)>("nvmlDeviceGetClockInfo");
  return clock != nullptr && clock(device_, type, &megahertz) == kSuccess ? megahertz * kMegahertz : 0;
}

Conditions Nvml::read() const {
  if (device_ == nullptr) return smi_ ? parse_smi(smi_line(pci_bus_id_)) : fixed_;
  Conditions now = fixed_;
  now.sm_clock_hz = clock_hz(kSmClock);
  now.memory_clock_hz = clock_hz(kMemoryClock);
  unsigned celsius = 0;
  const auto temperature = function<int (*)(void*, unsigned, unsigned*)>("nvmlDeviceGetTemperature");
  if (temperature != nullptr && temperature(device_, kGpuTemperature, &celsius) == kSuccess)
    now.temperature_c = celsius;
  return now;
}

}  // namespace tbdsim::measure
