#include "hwspecs/base/catalog.h"

#include <algorithm>

#include "hwspecs/base/error.h"
#include "hwspecs/base/suggest.h"

namespace tbdsim {
namespace fs = std::filesystem;

bool is_path(std::string_view name_or_path) {
  return name_or_path.find('/') != std::string_view::npos || name_or_path.ends_with(".yaml");
}

Catalog Catalog::from(const fs::path& data_dir) {
  for (const KindInfo& info : kKinds) {
    std::error_code ignored;
    if (!fs::is_directory(data_dir / info.folder, ignored)) {
      throw UsageError(data_dir.string() + ": no data directory of tbd-sim; expected a folder " +
                       std::string(info.folder) + " in it");
    }
  }
  return Catalog(data_dir);
}

std::vector<std::string> Catalog::names(Kind kind) const {
  std::vector<std::string> names;
  for (const fs::directory_entry& file : fs::directory_iterator(folder(kind))) {
    if (file.path().extension() == ".yaml") names.push_back(file.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

bool Catalog::contains(Kind kind, std::string_view name) const {
  if (name.empty() || is_path(name) || name.find('\0') != std::string_view::npos) return false;
  std::error_code ignored;
  return fs::is_regular_file(folder(kind) / (std::string(name) + ".yaml"), ignored);
}

std::optional<fs::path> Catalog::unseen(Kind kind, std::string_view name) const {
  const fs::path file = folder(kind) / "holdout" / (std::string(name) + ".yaml");
  std::error_code ignored;
  return fs::is_regular_file(file, ignored) ? std::optional(file) : std::nullopt;
}

Catalog Catalog::with_files_only(std::vector<std::string> files) const {
  Catalog catalog = *this;
  catalog.files_ = std::move(files);
  return catalog;
}

fs::path Catalog::find(Kind kind, std::string_view name_or_path) const {
  const KindInfo& info = info_of(kind);
  if (is_path(name_or_path)) {
    if (!files_ || std::find(files_->begin(), files_->end(), name_or_path) != files_->end())
      return name_or_path;
    throw UsageError("unknown " + std::string(info.singular) + " " + in_quotes(name_or_path) +
                     "; expected a name ('tbd-sim list " + std::string(info.plural) +
                     "' names them): no file is read here that the command line does not name");
  }
  if (contains(kind, name_or_path)) return folder(kind) / (std::string(name_or_path) + ".yaml");
  const std::string hint = did_you_mean(name_or_path, names(kind));
  throw UsageError("unknown " + std::string(info.singular) + " " + in_quotes(name_or_path) + hint +
                   " ('tbd-sim list " + std::string(info.plural) +
                   (files_ ? "' names them)" : "' names them; a path to a YAML file works too)"));
}

}  // namespace tbdsim
