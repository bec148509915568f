#include "calibrate/load_records.h"

#include <iterator>

#include <fmt/format.h>

#include "calibrate/importers/importers.h"
#include "hwspecs/base/error.h"
#include "hwspecs/gpu_names.h"

namespace tbdsim {

LoadedRecords load_records(std::span<const std::string> files, const Catalog& catalog) {
  if (files.empty())
    throw UsageError("no file to read; expected records (tbd-measure writes them) or published tables");
  LoadedRecords loaded;
  const GpuNames names = read_gpu_names(catalog);
  for (const std::string& file : files) {
    import_table(file, "", [&](Record record) {
      if (loaded.records.size() == kMostRecords) {
        throw UsageError(fmt::format("{}: more than {} records in all; expected fewer", file, kMostRecords));
      }
      record.gpu = gpu_name(record.gpu, names);
      if (!loaded.gpus.contains(record.gpu)) {
        loaded.gpus.emplace(record.gpu, read_gpu(catalog.find(Kind::gpu, record.gpu), catalog));
      }
      loaded.records.push_back(std::move(record));
    });
  }
  const std::size_t doubled = drop_duplicates(loaded.records);
  if (doubled > 0) loaded.notes.push_back(fmt::format("{} repeats of a call: the fastest was kept", doubled));
  return loaded;
}

}  // namespace tbdsim
