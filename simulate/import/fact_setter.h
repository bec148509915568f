// Sets facts of a GPU from texts, each within what can be.
#pragma once

#include <string>
#include <string_view>

#include "simulate/import/gpu_facts.h"

namespace tbdsim {

// Every function throws SpecError of the line for a text that is no such value. Drivers write "N/A" or
// "[Not Supported]" for what they do not know: nothing is set then.
class FactSetter {
 public:
  FactSetter(GpuFacts& facts, const std::string& file, int line) : facts_(facts), file_(file), line_(line) {}

  void name(std::string_view text) const;
  void capability(std::string_view text) const;
  void sm_count(std::string_view text) const;
  void lanes(std::string_view text) const;
  void clock(std::string_view megahertz) const;
  void memory_clock(double megahertz) const;  // after the width of the bus
  void bus_bits(std::string_view text) const;
  void usable_memory(std::string_view text, std::string_view unit) const;
  void reserved_memory(std::string_view mebibytes) const;  // taken off the usable memory
  void l2_size(std::string_view text) const;
  void ecc(std::string_view text) const;
  void divided(std::string_view text) const;
  void power_limit(std::string_view watts) const;
  void pcie_generation(std::string_view text) const;
  // The number of the text, above 0.
  [[nodiscard]] double positive(std::string_view text, std::string_view expected) const;

 private:
  [[nodiscard]] double number(std::string_view text, double least, double most,
                              std::string_view expected) const;

  GpuFacts& facts_;
  const std::string& file_;
  int line_;
};

// By the section and key of `nvidia-smi -q`, "FB Memory Usage/Total", and by the field of --query-gpu,
// "memory.total". Others say nothing that a GPU file has.
void set_smi_fact(const FactSetter& set, std::string_view path, std::string_view value);
void set_smi_query_fact(const FactSetter& set, std::string_view field, std::string_view value);

}  // namespace tbdsim
