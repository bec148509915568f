// Measured runs whose program, by its code, logs something else than its unit says: no fair target.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "simulate/validation/runs_table.h"

namespace tbdsim {

struct KnownFault {
  std::string set, model, framework;  // of the runs, as rows name them
  std::vector<std::string> versions;  // a row's has one of these texts in it
  bool several = false;               // only runs on several GPUs, of one machine or more
  std::string why;

  [[nodiscard]] bool has(const RunColumns& columns, std::span<const std::string> row) const;
};

// The faults of a file. Throws SpecError.
[[nodiscard]] std::vector<KnownFault> read_known_faults(const std::filesystem::path& file);

// The faults that the project knows: simulate/validation/benchmarks/known_faults.yaml below the data
// directory.
[[nodiscard]] std::vector<KnownFault> known_faults(const Catalog& catalog);

}  // namespace tbdsim
