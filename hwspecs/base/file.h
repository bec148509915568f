// Whole files in and out: bounded reads, and writes that appear complete or not at all.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

namespace tbdsim {

// The file's bytes. Throws UsageError when it cannot be read, is no regular file, or holds more than `most`
// bytes (checked before reading).
[[nodiscard]] std::string read_file(const std::filesystem::path& path, std::uintmax_t most_bytes);

// Opens for reading; UsageError "PATH: cannot be read: REASON" when that fails.
[[nodiscard]] std::ifstream open_input(const std::filesystem::path& path);

// True for a path below /dev or /proc, which names a device or an open file wherever a link there leads to.
// False below /dev/shm: files there are ordinary ones, in memory.
[[nodiscard]] bool is_device(const std::filesystem::path& path);

// The file that a link leads to; the path itself where it is no link, a device, or nothing is there.
[[nodiscard]] std::filesystem::path behind_links(const std::filesystem::path& path);

// Writes output to "PATH.tmp-PID" in the target's folder and renames it over the target on commit(). Without
// a commit (an exception, an interrupt) the target is unchanged and the temporary file is removed. A link is
// followed, and stays. A target that exists and is no regular file (/dev/null, a pipe), or lies below /dev or
// /proc (/dev/stdout, wherever that leads), is written to directly, behind what it holds. Throws UsageError
// when the file cannot be created or not everything could be written (disk full).
class AtomicFile {
 public:
  explicit AtomicFile(std::filesystem::path target);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  [[nodiscard]] std::ostream& stream() { return out_; }
  void commit();

 private:
  std::filesystem::path target_;
  std::filesystem::path written_;  // the temporary file, or the target itself where that is no regular file
  std::ofstream out_;
};

}  // namespace tbdsim
