// Files of records and published tables -> records under the catalogue's names.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "calibrate/records/record.h"
#include "calibrate/samples/samples.h"
#include "hwspecs/base/catalog.h"

namespace tbdsim {

struct LoadedRecords {
  std::vector<Record> records;     // `gpu` is a stem of hwspecs/gpus; of rows with one key the fastest
  GpuSpecs gpus;                   // every card that a record is of
  std::vector<std::string> notes;  // what was left out of them
};

inline constexpr std::size_t kMostRecords = 2'000'000;

// Throws UsageError (a file that cannot be read, a GPU that is in no file, more than `most`) or SpecError.
[[nodiscard]] LoadedRecords load_records(std::span<const std::string> files, const Catalog& catalog,
                                         std::size_t most = kMostRecords);

}  // namespace tbdsim
