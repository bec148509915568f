#include "simulate/serve/dropped_files.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <optional>
#include <system_error>

#include <fmt/format.h>

#include "hwspecs/base/catalog.h"
#include "hwspecs/base/error.h"
#include "hwspecs/base/suggest.h"
#include "simulate/import/read_network.h"

namespace tbdsim {
namespace fs = std::filesystem;

namespace {

constexpr std::string_view kPrefix = "dropped/";
constexpr std::size_t kLongestName = 100;
constexpr std::string_view kExpected =
    "expected a model: YAML, a captured step, a config.json of Hugging Face, ONNX or another format that "
    "'tbd-sim import' makes a model of";

fs::path own_folder() {
  std::string pattern = (fs::temp_directory_path() / "tbd-sim-XXXXXX").string();
  if (::mkdtemp(pattern.data()) == nullptr)
    throw UsageError(pattern + ": cannot be made: " + std::strerror(errno));
  return pattern;
}

// The last part of a path, of letters, digits, '.', '_' and '-' alone: safe in paths, JSON and HTML.
std::string plain_name(const std::string& given) {
  std::string name = given.substr(given.find_last_of("/\\") + 1);
  for (char& c : name) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '.' || c == '_' || c == '-';
    if (!plain) c = '_';
  }
  if (name.size() > kLongestName) name = name.substr(name.size() - kLongestName);
  if (name.empty() || name.front() == '.')
    throw UsageError("a file called " + in_quotes(given) + "; " + std::string(kExpected));
  return name;
}

// The 64-bit FNV-1a hash, which finds the same file again; it is not meant to withstand a forger, who could
// only replace a file of his own.
std::string hash_of(std::string_view bytes) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return fmt::format("{:016x}", hash);
}

void write_file(const fs::path& path, const std::string& bytes) {
  std::ofstream out(path, std::ios::binary);
  out << bytes;
  if (!out.flush()) throw UsageError(path.filename().string() + ": the disk has no room for it");
}

// The file that tbd-sim reads: the dropped one, or the model that its format becomes, written beside it.
DroppedFile as_model(DroppedFile file) {
  const std::string named = file.path.filename().string();
  const bool yaml = named.ends_with(".yaml");
  const std::optional<FileFormat> format = yaml ? std::nullopt : recognise(file.path);
  if (!format) {
    if (is_path(named)) return file;
    throw UsageError(named + ": no format that is known; " + std::string(kExpected));
  }
  const FormatInfo& info = info_of(*format);
  if (info.kind != ImportKind::model)
    throw UsageError(named + ": " + std::string(info.title) + ", which is no model; " +
                     std::string(kExpected));
  const ImportedFile network = read_network(info.format, file.path, {});
  file.notes = network.notes;
  file.path = file.path.parent_path() / (network.name + network.extension);
  write_file(file.path, network.text);
  return file;
}

}  // namespace

DroppedFiles::DroppedFiles() : folder_(own_folder()) {}

DroppedFiles::~DroppedFiles() {
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
}

bool DroppedFiles::is_dropped(std::string_view model) { return model.starts_with(kPrefix); }

DroppedFile DroppedFiles::keep(const std::string& file_name, const std::string& bytes) try {
  const std::string named = plain_name(file_name);
  const std::string hash = hash_of(bytes);
  const std::scoped_lock held(lock_);
  std::string name = std::string(kPrefix) + hash + '/' + named;
  const auto same =
      std::find_if(files_.begin(), files_.end(), [&](const DroppedFile& file) { return file.name == name; });
  if (same != files_.end()) return *same;
  const fs::path folder = folder_ / hash;
  fs::create_directory(folder);
  write_file(folder / named, bytes);
  DroppedFile file;
  try {
    file = as_model({.name = std::move(name), .path = folder / named, .notes = {}});
  } catch (const Error&) {
    fs::remove_all(folder);
    throw;
  }
  if (file.path != folder / named) fs::remove(folder / named);
  files_.push_back(file);
  if (files_.size() > kMostFiles) {
    fs::remove_all(files_.front().path.parent_path());
    files_.pop_front();
  }
  return file;
} catch (const fs::filesystem_error& error) {
  throw UsageError(file_name + ": cannot be kept: " + error.code().message());
}

void DroppedFiles::forget(const DroppedFile& file) {
  const std::scoped_lock held(lock_);
  std::erase_if(files_, [&](const DroppedFile& kept) { return kept.name == file.name; });
  std::error_code ignored;
  fs::remove_all(file.path.parent_path(), ignored);
}

DroppedFile DroppedFiles::find(const std::string& name) const {
  const std::scoped_lock held(lock_);
  for (const DroppedFile& file : files_) {
    if (file.name == name) return file;
  }
  throw UsageError(in_quotes(name.substr(name.rfind('/') + 1)) +
                   " is not here any more; expected the file to be dropped once more");
}

std::vector<std::string> DroppedFiles::paths() const {
  const std::scoped_lock held(lock_);
  std::vector<std::string> paths;
  for (const DroppedFile& file : files_) paths.push_back(file.path.string());
  return paths;
}

std::string DroppedFiles::with_names(std::string text) const {
  const std::string before = folder_.string() + '/';
  const std::size_t length = before.size() + hash_of("").size() + 1;  // FOLDER/HASH/
  for (std::size_t at = text.find(before); at != std::string::npos; at = text.find(before, at))
    text.erase(at, length);
  return text;
}

}  // namespace tbdsim
