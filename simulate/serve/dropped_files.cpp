#include "simulate/serve/dropped_files.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <optional>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "hwspecs/base/catalog.h"
#include "hwspecs/base/error.h"
#include "hwspecs/base/file.h"
#include "hwspecs/base/spec_parser.h"
#include "hwspecs/base/suggest.h"
#include "simulate/import/gpu_file.h"
#include "simulate/import/read_network.h"

namespace tbdsim {
namespace fs = std::filesystem;

namespace {

constexpr std::string_view kPrefix = "dropped/";
constexpr std::size_t kLongestName = 100;
constexpr std::uintmax_t kMostFactBytes = std::uintmax_t{1} << 26U;  // 64 MiB
constexpr std::string_view kExpected =
    "expected a model (YAML, a captured step, a config.json of Hugging Face, ONNX or another format that "
    "'tbd-sim import' makes a model of) or a GPU (YAML, deviceQuery, nvidia-smi -q)";

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

// True for YAML that describes a GPU: no other file has this key.
bool describes_gpu(const fs::path& yaml) {
  const SpecTree tree = read_spec_file(yaml);
  return std::any_of(tree.entries.begin(), tree.entries.end(),
                     [](const SpecEntry& entry) { return entry.key == "sm_count"; });
}

ImportedFile imported_gpu(FileFormat format, const fs::path& path, const Catalog& catalog) {
  const std::string file = path.filename().string();
  const std::vector<GpuFacts> gpus = read_gpu_facts(format, read_file(path, kMostFactBytes), file);
  ImportedFile imported = gpu_file(gpus.front(), file, {}, catalog);
  if (gpus.size() > 1)
    imported.notes.push_back(fmt::format("the file names {} GPUs; this is the first", gpus.size()));
  return imported;
}

// The file that tbd-sim reads: the dropped one, or the model or GPU that its format becomes, written beside
// it.
DroppedFile as_spec(DroppedFile file, const Catalog& catalog) {
  const std::string named = file.path.filename().string();
  if (named.ends_with(".yaml")) {
    if (describes_gpu(file.path)) file.kind = Kind::gpu;
    return file;
  }
  const std::optional<FileFormat> format = recognise(file.path);
  if (!format) {
    if (is_path(named)) return file;
    throw UsageError(named + ": no format that is known; " + std::string(kExpected));
  }
  const FormatInfo& info = info_of(*format);
  if (info.kind != ImportKind::model && info.kind != ImportKind::gpu)
    throw UsageError(named + ": " + std::string(info.title) + ", which is no model and no GPU; " +
                     std::string(kExpected));
  file.kind = info.kind == ImportKind::gpu ? Kind::gpu : Kind::model;
  const ImportedFile imported = file.kind == Kind::gpu ? imported_gpu(info.format, file.path, catalog)
                                                       : read_network(info.format, file.path, {});
  file.notes = imported.notes;
  file.path = file.path.parent_path() / (imported.name + imported.extension);
  write_file(file.path, imported.text);
  return file;
}

}  // namespace

DroppedFiles::DroppedFiles(Catalog catalog) : catalog_(std::move(catalog)), folder_(own_folder()) {}

DroppedFiles::~DroppedFiles() {
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
}

bool DroppedFiles::is_dropped(std::string_view name) { return name.starts_with(kPrefix); }

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
    file = as_spec({.name = std::move(name), .path = folder / named}, catalog_);
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
