#include "simulate/import/gpu_facts.h"

#include <algorithm>
#include <charconv>
#include <sstream>

#include <fmt/format.h>

#include "hwspecs/base/csv.h"
#include "hwspecs/base/suggest.h"
#include "simulate/import/fact_setter.h"
#include "simulate/import/text_lines.h"

namespace tbdsim {
namespace {

// "key: value" or "key : value"; an empty value where the line has no colon.
struct KeyValue {
  std::string_view key, value;
};
KeyValue key_value(std::string_view line) {
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos) return {trimmed(line), {}};
  return {trimmed(line.substr(0, colon)), trimmed(line.substr(colon + 1))};
}

std::vector<GpuFacts> require_some(std::vector<GpuFacts> all, const std::string& file, const char* expected) {
  if (all.empty()) fail_at(file, 0, fmt::format("names no GPU; expected {}", expected));
  return all;
}

std::string_view between_quotes(std::string_view text) {
  const std::size_t first = text.find('"');
  const std::size_t last = text.rfind('"');
  return first == last ? trimmed(text) : text.substr(first + 1, last - first - 1);
}

// "(80) Multiprocessors, ( 64) CUDA Cores/MP: 5120 CUDA Cores"
void set_units(FactSetter& set, std::string_view key) {
  set.sm_count(key);
  const std::size_t second = key.find('(', key.find('(') + 1);
  if (second != std::string_view::npos) set.lanes(key.substr(second));
}

}  // namespace

std::vector<GpuFacts> read_device_query(std::string_view text, const std::string& file) {
  std::vector<GpuFacts> all;
  double memory_clock = 0;  // MHz
  int number = 0;
  for (const std::string& line : lines_of(text)) {
    ++number;
    const auto [key, value] = key_value(line);
    if (key.starts_with("Device ") && holds(value, "\"")) {
      all.push_back(
          {.name = std::string(between_quotes(value)), .tool = "deviceQuery", .clock_is_boost = true});
      memory_clock = 0;
      continue;
    }
    if (all.empty()) continue;
    FactSetter set(all.back(), file, number);
    if (key.starts_with("CUDA Capability")) set.capability(value);
    if (key == "Total amount of global memory") {
      const std::size_t bytes = value.find('(');
      if (bytes == std::string_view::npos)
        fail_at(file, number, in_quotes(value) + "; expected bytes in brackets");
      set.usable_memory(value.substr(bytes), "B");
    }
    if (holds(key, "Multiprocessors") && holds(key, "CUDA Cores/MP")) set_units(set, key);
    if (key == "GPU Max Clock rate" || key == "GPU Clock rate" || key == "GPU Clock Speed") set.clock(value);
    if (key == "Memory Clock rate") memory_clock = set.positive(value, "a clock in MHz");
    if (key == "Memory Bus Width") set.bus_bits(value);
    if (key == "L2 Cache Size") set.l2_size(value);
    if (key == "Device has ECC support") set.ecc(value);
    if (memory_clock > 0 && all.back().memory_bus_bits) set.memory_clock(memory_clock);
  }
  return require_some(std::move(all), file, "lines as 'Device 0: \"Tesla T4\"' of deviceQuery");
}

std::vector<GpuFacts> read_smi_text(std::string_view text, const std::string& file) {
  struct Section {
    std::size_t indent;
    std::string name;
  };
  std::vector<GpuFacts> all;
  std::vector<Section> above;
  int number = 0;
  for (const std::string& line : lines_of(text)) {
    ++number;
    const std::size_t indent = line.find_first_not_of(" \t");
    if (indent == std::string::npos) continue;
    while (!above.empty() && above.back().indent >= indent) above.pop_back();
    if (line.starts_with("GPU ")) {
      all.push_back({.name = {}, .tool = "nvidia-smi -q"});
      above = {{indent, "GPU"}};
      continue;
    }
    const auto [key, value] = key_value(line);
    if (value.empty()) {
      above.push_back({indent, std::string(key)});
      continue;
    }
    // A slice of a card has a memory of its own.
    const bool of_slice = std::any_of(above.begin(), above.end(), [](const Section& section) {
      return section.name.starts_with("MIG Device");
    });
    if (all.empty() || above.empty() || of_slice) continue;
    const std::string path = above.back().name + "/" + std::string(key);
    set_smi_fact(FactSetter(all.back(), file, number), path, value);
  }
  std::erase_if(all, [](const GpuFacts& facts) { return facts.name.empty(); });
  return require_some(std::move(all), file, "'Product Name' of nvidia-smi -q");
}

std::vector<GpuFacts> read_smi_csv(std::string_view text, const std::string& file) {
  std::istringstream in{std::string(text)};
  CsvReader csv(in, file);
  std::vector<GpuFacts> all;
  std::vector<std::string> fields;
  while (csv.next(fields)) {
    GpuFacts facts{.name = {}, .tool = "nvidia-smi --query-gpu"};
    const FactSetter set(facts, file, csv.row_mark().line);
    for (std::size_t i = 0; i < fields.size(); ++i) {
      const std::string_view column = trimmed(csv.columns()[i]);
      set_smi_query_fact(set, trimmed(column.substr(0, column.find('['))), trimmed(fields[i]));
    }
    if (facts.name.empty())
      fail_at(file, csv.row_mark().line, "no name; expected --query-gpu=name,... with a name");
    all.push_back(std::move(facts));
  }
  return require_some(std::move(all), file,
                      "a row for each GPU of nvidia-smi --query-gpu=name,... --format=csv");
}

std::vector<GpuFacts> read_gpu_facts(FileFormat format, std::string_view text, const std::string& file) {
  switch (format) {
    case FileFormat::device_query:
      return read_device_query(text, file);
    case FileFormat::smi_text:
      return read_smi_text(text, file);
    case FileFormat::smi_xml:
      return read_smi_xml(text, file);
    default:
      return read_smi_csv(text, file);
  }
}

GpuFacts merged(GpuFacts first, const GpuFacts& second) {
  if (second.clock && (!first.clock || (second.clock_is_boost && !first.clock_is_boost))) {
    first.clock = second.clock;
    first.clock_is_boost = second.clock_is_boost;
  }
  const auto fill = [](auto& into, const auto& from) {
    if (!into) into = from;
  };
  fill(first.capability, second.capability);
  fill(first.sm_count, second.sm_count);
  fill(first.fp32_lanes_per_sm, second.fp32_lanes_per_sm);
  fill(first.memory_bandwidth, second.memory_bandwidth);
  fill(first.memory_bus_bits, second.memory_bus_bits);
  fill(first.usable_memory, second.usable_memory);
  fill(first.ecc, second.ecc);
  fill(first.l2_size, second.l2_size);
  fill(first.power_limit, second.power_limit);
  fill(first.pcie_generation, second.pcie_generation);
  if (first.tool != second.tool) first.tool += " and " + second.tool;
  return first;
}

BytesPerSecond bandwidth_of(Hertz memory_clock, int bus_bits) {
  constexpr double kTransfers = 2;
  constexpr double kBits = 8;
  return BytesPerSecond(memory_clock.si() * kTransfers * bus_bits / kBits);
}

}  // namespace tbdsim
