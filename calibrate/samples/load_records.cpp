#include "calibrate/samples/load_records.h"

#include <iterator>

#include <fmt/format.h>

#include "calibrate/importers/importers.h"
#include "hwspecs/base/error.h"
#include "hwspecs/gpu_names.h"

namespace tbdsim {

namespace {

const std::string& name_in(const std::string& file, const std::string& gpu, const GpuNames& names) {
  try {
    return gpu_name(gpu, names);
  } catch (const UsageError& unknown) {
    throw UsageError(file + ": " + unknown.what());
  }
}

}  // namespace

LoadedRecords load_records(std::span<const std::string> files, const Catalog& catalog, std::size_t most) {
  if (files.empty())
    throw UsageError("no file to read; expected records (tbd-measure writes them) or published tables");
  LoadedRecords loaded;
  const GpuNames names = read_gpu_names(catalog);
  for (const std::string& file : files) {
    const ImportSummary summary = import_table(file, "", [&](Record record) {
      if (loaded.records.size() == most) {
        throw UsageError(fmt::format("{}: more than {} records in all; expected fewer", file, most));
      }
      record.gpu = name_in(file, record.gpu, names);
      if (!loaded.gpus.contains(record.gpu)) {
        loaded.gpus.emplace(record.gpu, read_gpu(catalog.find(Kind::gpu, record.gpu), catalog));
      }
      loaded.records.push_back(std::move(record));
    });
    loaded.notes.insert(loaded.notes.end(), summary.notes.begin(), summary.notes.end());
  }
  if (loaded.records.empty()) {
    throw UsageError(fmt::format("{}: no record in {}; expected some", files.front(),
                                 files.size() == 1 ? "it" : "this and the other files"));
  }
  const std::size_t doubled = drop_duplicates(loaded.records);
  const std::size_t slower = keep_fastest_algorithms(loaded.records);
  if (doubled > 0) loaded.notes.push_back(fmt::format("{} repeats of a call: the fastest was kept", doubled));
  if (slower > 0) {
    loaded.notes.push_back(fmt::format("{} slower algorithms of a call: the fastest was kept", slower));
  }
  return loaded;
}

}  // namespace tbdsim
