#include "simulate/validation/published_runs.h"

#include <algorithm>
#include <deque>
#include <fstream>

#include "hwspecs/base/error.h"
#include "hwspecs/base/file.h"

namespace tbdsim {
namespace fs = std::filesystem;

std::vector<fs::path> validation_set(const Catalog& catalog) {
  const fs::path folder = catalog.data_dir() / "simulate/validation/runs";
  std::vector<fs::path> files;
  std::error_code failure;
  for (const fs::directory_entry& file : fs::directory_iterator(folder, failure)) {
    if (file.path().extension() == ".csv" && file.path().filename() != kExpectedErrors)
      files.push_back(file.path());
  }
  if (files.empty())
    throw UsageError(folder.string() + ": no tables of measured runs; expected a file for --runs");
  std::sort(files.begin(), files.end());
  return files;
}

Validation validate_runs(const std::vector<fs::path>& files, const std::string& by,
                         std::span<const KnownFault> faults, const RowPredictor& predictor,
                         const std::function<void(std::size_t)>& progress) {
  std::deque<std::ifstream> open;  // tables refer to them
  std::vector<RunsTable> tables;
  for (const fs::path& file : files)
    tables.push_back({open.emplace_back(open_input(file.string())), file.string()});
  return validate_runs(tables, by, faults, predictor, progress);
}

}  // namespace tbdsim
