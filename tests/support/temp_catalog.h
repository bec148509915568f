// The source tree's catalogue with files of one's own in one folder.
#pragma once

#include <filesystem>
#include <string_view>

#include "hwspecs/base/catalog.h"
#include "tests/support/temp_dir.h"

namespace tbdsim::test {

class TempCatalog {
 public:
  // The folder of `own` is a copy, to which add() adds; the others are links to the source tree's.
  explicit TempCatalog(Kind own) : own_(info_of(own).folder) {
    const std::filesystem::path source = TBDSIM_SOURCE_DIR;
    for (const KindInfo& kind : kKinds) {
      const std::filesystem::path folder = directory_.path() / kind.folder;
      std::filesystem::create_directories(folder.parent_path());
      if (kind.kind == own)
        std::filesystem::copy(source / kind.folder, folder);
      else
        std::filesystem::create_directory_symlink(source / kind.folder, folder);
    }
  }

  // Writes <name>.yaml into the folder; returns its path.
  std::filesystem::path add(std::string_view name, std::string_view text) const {
    return directory_.write((own_ / name).string() + ".yaml", text);
  }
  [[nodiscard]] Catalog catalog() const { return Catalog::from(directory_.path()); }

 private:
  TempDir directory_;
  std::filesystem::path own_;
};

}  // namespace tbdsim::test
