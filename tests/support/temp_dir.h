// A directory of its own for a test, removed at its end.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace tbdsim::test {

class TempDir {
 public:
  TempDir();
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  // Writes a file of that name into the directory; returns its path.
  std::filesystem::path write(std::string_view name, std::string_view content) const;

 private:
  std::filesystem::path path_;
};

}  // namespace tbdsim::test
