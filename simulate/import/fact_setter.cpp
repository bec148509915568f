#include "simulate/import/fact_setter.h"

#include <fmt/format.h>

#include "hwspecs/base/quantity_text.h"
#include "hwspecs/base/suggest.h"
#include "simulate/import/text_lines.h"

namespace tbdsim {
namespace {

constexpr double kMega = 1e6;
constexpr double kMostClock = 100'000;  // MHz
constexpr double kMostBusBits = 100'000;
constexpr double kLargestMemory = 1e15;  // bytes
constexpr double kMostWatts = 100'000;
constexpr double kMostUnits = 10'000;  // SMs, lanes: as gpu_spec.cpp has it
constexpr int kNewestPcie = 9;

bool unknown(std::string_view text) {
  return text.empty() || text.starts_with("N/A") || text.starts_with("ERR!") ||
         text.starts_with("Requested") || text.starts_with("Insufficient") ||
         text.starts_with("[Insufficient") || text.starts_with("[N") || text.starts_with("Not ") ||
         text.starts_with("[Unknown") || text.starts_with("Unknown") || text.starts_with("[GPU");
}

}  // namespace

double FactSetter::number(std::string_view text, double least, double most, std::string_view expected) const {
  const auto value = leading_number(text);
  if (!value || *value < least || *value > most)
    fail_at(file_, line_, fmt::format("{}; expected {}", in_quotes(text), expected));
  return *value;
}

double FactSetter::positive(std::string_view text, std::string_view expected) const {
  return number(text, 1e-3, kLargestMemory, expected);
}

void FactSetter::name(std::string_view text) const {
  constexpr std::size_t kLongestName = 200;
  if (text.size() > kLongestName) fail_at(file_, line_, in_quotes(text) + "; expected the name of a GPU");
  if (!unknown(text)) facts_.name = std::string(text);
}

void FactSetter::capability(std::string_view text) const {
  if (unknown(text)) return;
  facts_.capability = fmt::format("{:.1f}", number(text, 1, 99, "a compute capability as 7.0"));
}

void FactSetter::sm_count(std::string_view text) const {
  facts_.sm_count = static_cast<int>(number(text, 1, kMostUnits, "a number of multiprocessors"));
}

void FactSetter::lanes(std::string_view text) const {
  facts_.fp32_lanes_per_sm = static_cast<int>(number(text, 1, kMostUnits, "CUDA cores of a multiprocessor"));
}

void FactSetter::clock(std::string_view megahertz) const {
  if (unknown(megahertz)) return;
  facts_.clock = Hertz(kMega * number(megahertz, 1, kMostClock, "a clock in MHz"));
}

void FactSetter::memory_clock(double megahertz) const {
  if (megahertz < 1 || megahertz > kMostClock)
    fail_at(file_, line_, "no clock of a memory; expected one in MHz");
  if (facts_.memory_bus_bits)
    facts_.memory_bandwidth = bandwidth_of(Hertz(kMega * megahertz), *facts_.memory_bus_bits);
}

void FactSetter::bus_bits(std::string_view text) const {
  facts_.memory_bus_bits = static_cast<int>(number(text, 1, kMostBusBits, "the bits of a memory bus"));
}

void FactSetter::usable_memory(std::string_view text, std::string_view unit) const {
  if (unknown(text)) return;
  const double size = number(text, 1, kLargestMemory, "a size of memory");
  facts_.usable_memory = Bytes(unit == "B" ? size : size * kMebi);
}

void FactSetter::reserved_memory(std::string_view mebibytes) const {
  if (unknown(mebibytes) || !facts_.usable_memory) return;
  const Bytes reserved(kMebi * number(mebibytes, 0, kLargestMemory / kMebi, "a size of memory"));
  if (reserved < *facts_.usable_memory) *facts_.usable_memory -= reserved;
}

void FactSetter::l2_size(std::string_view text) const {
  const double bytes = number(text, 0, kLargestMemory, "a size of a cache in bytes");
  if (bytes > 0) facts_.l2_size = Bytes(bytes);
}

void FactSetter::divided(std::string_view text) const { facts_.divided |= text.starts_with("Enabled"); }

void FactSetter::ecc(std::string_view text) const {
  if (!unknown(text)) facts_.ecc = text.starts_with("Enabled");
}

void FactSetter::power_limit(std::string_view watts) const {
  if (unknown(watts)) return;
  facts_.power_limit = Watts(number(watts, 1, kMostWatts, "a power limit in W"));
}

void FactSetter::pcie_generation(std::string_view text) const {
  if (unknown(text)) return;
  facts_.pcie_generation = static_cast<int>(number(text, 1, kNewestPcie, "a generation of PCI Express"));
}

void set_smi_fact(const FactSetter& set, std::string_view path, std::string_view value) {
  if (path == "GPU/Product Name") set.name(value);
  if (path == "MIG Mode/Current") set.divided(value);
  if (path == "PCIe Generation/Max") set.pcie_generation(value);
  if (path == "FB Memory Usage/Total") set.usable_memory(value, "MiB");
  if (path == "FB Memory Usage/Reserved") set.reserved_memory(value);
  if (path == "ECC Mode/Current" || path == "Ecc Mode/Current") set.ecc(value);
  if (path == "Power Readings/Default Power Limit" || path == "GPU Power Readings/Default Power Limit")
    set.power_limit(value);
  if (path == "Max Clocks/SM") set.clock(value);
}

void set_smi_query_fact(const FactSetter& set, std::string_view field, std::string_view value) {
  if (field == "name" || field == "gpu_name") set.name(value);
  if (field == "compute_cap") set.capability(value);
  if (field == "memory.total") set.usable_memory(value, "MiB");
  if (field == "memory.reserved") set.reserved_memory(value);
  if (field == "mig.mode.current") set.divided(value);
  if (field == "ecc.mode.current") set.ecc(value);
  if (field == "power.default_limit" || field == "power.limit") set.power_limit(value);
  if (field == "clocks.max.sm" || field == "clocks.max.graphics") set.clock(value);
  if (field == "pcie.link.gen.max") set.pcie_generation(value);
}

}  // namespace tbdsim
