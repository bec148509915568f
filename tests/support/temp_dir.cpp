#include "tests/support/temp_dir.h"

#include <fstream>
#include <stdexcept>

#include <stdlib.h>

namespace tbdsim::test {

TempDir::TempDir() {
  std::string name = (std::filesystem::temp_directory_path() / "tbdsim-test-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary directory");
  path_ = name;
}

TempDir::~TempDir() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::filesystem::path TempDir::write(std::string_view name, std::string_view content) const {
  const std::filesystem::path file = path_ / name;
  std::ofstream(file, std::ios::binary) << content;
  return file;
}

}  // namespace tbdsim::test
