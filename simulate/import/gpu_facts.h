// Facts that a driver or a tool says of one GPU: any may be missing.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hwspecs/base/quantity.h"
#include "simulate/import/recognise.h"

namespace tbdsim {

struct GpuFacts {
  std::string name{};                       // "Tesla V100-SXM2-32GB"
  std::string tool{};                       // "deviceQuery": a source names it
  std::optional<std::string> capability{};  // "7.0"
  std::optional<int> sm_count{};
  std::optional<int> fp32_lanes_per_sm{};
  std::optional<Hertz> clock{};
  bool clock_is_boost =
      false;  // else it is the highest the driver allows, above the boost clock of GeForce cards
  std::optional<BytesPerSecond> memory_bandwidth{};
  std::optional<int> memory_bus_bits{};
  std::optional<Bytes> usable_memory{};
  std::optional<bool> ecc{};
  std::optional<Bytes> l2_size{};
  std::optional<Watts> power_limit{};
  std::optional<int> pcie_generation{};
  bool divided = false;  // into MIG slices: the driver says so, of the whole card
};

// The facts of each GPU named in the output of CUDA's sample deviceQuery, of `nvidia-smi -q` as text and as
// XML, and of `nvidia-smi --query-gpu=... --format=csv`. `file` is for errors. Throw SpecError for text that
// names no GPU and for a value that cannot be.
[[nodiscard]] std::vector<GpuFacts> read_device_query(std::string_view text, const std::string& file);
[[nodiscard]] std::vector<GpuFacts> read_smi_text(std::string_view text, const std::string& file);
[[nodiscard]] std::vector<GpuFacts> read_smi_xml(std::string_view text, const std::string& file);
[[nodiscard]] std::vector<GpuFacts> read_smi_csv(std::string_view text, const std::string& file);

// The same by the format, one whose kind is ImportKind::gpu.
[[nodiscard]] std::vector<GpuFacts> read_gpu_facts(FileFormat format, std::string_view text,
                                                   const std::string& file);

// Facts of one GPU from two files: those of the first, and of the second what the first lacks. A boost clock
// goes before the highest one.
[[nodiscard]] GpuFacts merged(GpuFacts first, const GpuFacts& second);

// Bytes per second of memory whose clock and bus a driver reports: two transfers in each cycle.
[[nodiscard]] BytesPerSecond bandwidth_of(Hertz memory_clock, int bus_bits);

}  // namespace tbdsim
