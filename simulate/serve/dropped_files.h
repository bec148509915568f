// Models and GPUs that were dropped on the page of `tbd-sim serve`.
#pragma once

#include <cstddef>
#include <deque>
#include <filesystem>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "hwspecs/base/catalog.h"

namespace tbdsim {

// A dropped file: the name by which requests call it, "dropped/9f86d081884c7d65/mine.yaml", which is the same
// for the same content; the path of what tbd-sim reads of it; what it describes, a model or a GPU; what there
// is to say of its conversion.
struct DroppedFile {
  std::string name;
  std::filesystem::path path;
  Kind kind = Kind::model;
  std::vector<std::string> notes{};
};

// Keeps the files in a folder of its own among the system's temporary ones, which nobody else may read and
// which it removes at its end. Thread-safe.
class DroppedFiles {
 public:
  static constexpr std::size_t kMostFiles = 16;  // the oldest goes first

  explicit DroppedFiles(Catalog catalog);
  ~DroppedFiles();
  DroppedFiles(const DroppedFiles&) = delete;
  DroppedFiles& operator=(const DroppedFiles&) = delete;

  // Keeps a file called `file_name`. A file in another tool's format is kept as the model or the GPU that
  // `tbd-sim import` makes of it. Throws as read_network() and gpu_file(), and UsageError for a name or a
  // format that neither has.
  DroppedFile keep(const std::string& file_name, const std::string& bytes);
  void forget(const DroppedFile& file);

  [[nodiscard]] static bool is_dropped(std::string_view name);
  // Throws UsageError for a file that is not kept any more.
  [[nodiscard]] DroppedFile find(const std::string& name) const;
  [[nodiscard]] std::vector<std::string> paths() const;
  // The text with the names that people gave their files in place of the paths where they are kept.
  [[nodiscard]] std::string with_names(std::string text) const;

 private:
  Catalog catalog_;
  std::filesystem::path folder_;
  mutable std::mutex lock_;
  std::deque<DroppedFile> files_;  // the oldest first
};

}  // namespace tbdsim
