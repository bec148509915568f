#include "simulate/sweep/inputs.h"

#include <filesystem>
#include <set>

#include <fmt/format.h>

#include "hwspecs/base/file.h"
#include "hwspecs/base/spec_reader.h"
#include "simulate/prediction/scenario_keys.h"

namespace tbdsim {
namespace fs = std::filesystem;
namespace {

constexpr std::uintmax_t kMostBytes = std::uintmax_t{1} << 26U;

std::uint64_t fnv1a(const std::string& bytes) {
  constexpr std::uint64_t kOffset = 14'695'981'039'346'656'037U;
  constexpr std::uint64_t kPrime = 1'099'511'628'211U;
  std::uint64_t hash = kOffset;
  for (const char byte : bytes) hash = (hash ^ static_cast<unsigned char>(byte)) * kPrime;
  return hash;
}

// Adds the file and, where it is based on another of its folder, that one.
void add_with_bases(const fs::path& file, std::set<fs::path>& files) {
  if (!fs::exists(file) || !files.insert(file).second) return;
  for (const SpecEntry& entry : read_spec_file(file).entries) {
    if (entry.key == "based_on")
      add_with_bases(file.parent_path() / (SpecNode(entry.value).text() + ".yaml"), files);
  }
}

// The file's path, from the catalogue's folder for a file in there, so that a copy of the same catalogue
// elsewhere goes on with a sweep.
std::string name_of(const fs::path& file, const fs::path& catalog) {
  const fs::path within = file.lexically_relative(catalog);
  return within.empty() || *within.begin() == ".." ? file.string() : within.string();
}

}  // namespace

std::string input_lines(const Sweep& sweep, const Catalog& catalog) {
  std::set<fs::path> files;
  for (const KindInfo& kind : kKinds) {
    for (const auto& file : fs::recursive_directory_iterator(catalog.data_dir() / kind.folder)) {
      if (file.path().extension() == ".yaml") files.insert(file.path());
    }
  }
  for (const SweepAxis& axis : sweep.axes) {
    if (find_scenario_key(axis.key()) == nullptr) continue;
    for (const std::string& value : axis.ends()) {
      if (is_path(value)) add_with_bases(value, files);
    }
  }
  std::string lines;
  for (const fs::path& file : files) {
    lines += fmt::format("file {} {:016x}\n", name_of(file, catalog.data_dir()),
                         fnv1a(read_file(file, kMostBytes)));
  }
  return lines;
}

}  // namespace tbdsim
