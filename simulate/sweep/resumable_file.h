// The output of a long sweep. Rows go to FILE.part, which is renamed to FILE when all of them are there.
// After an interrupt, a full disk or a crash the same command continues FILE.part, and the output is the same
// bytes. A link is followed, and stays. FILE.part.sweep describes the sweep: its options, and the files that
// were read.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <string_view>

namespace tbdsim {

// The file at `path`, made where there is none, locked against other processes for as long as the object
// lives. Throws UsageError where it cannot be opened or another process holds the lock.
class FileLock {
 public:
  explicit FileLock(const std::filesystem::path& path);
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  int descriptor_ = -1;
};

class SweepFile {
 public:
  // True where `line` (with its end) is line number `index` of this sweep's output, from 0.
  using IsLine = std::function<bool(std::int64_t index, std::string_view line)>;

  // Opens FILE.part and locks it for as long as the object lives. Throws UsageError where another process
  // writes it, where it is of another sweep (`description` differs: the message names the first line that
  // does), where a line in it is not of this sweep, or where it cannot be written.
  SweepFile(const std::filesystem::path& file, const std::string& description, const IsLine& is_line);

  // Number of whole lines that FILE.part holds.
  [[nodiscard]] std::int64_t lines() const { return lines_; }

  // Throws UsageError if not everything could be written (disk full); whole lines remain in the file.
  void append(const std::string& lines);
  void commit();

 private:
  void require_description(const std::string& description) const;
  void keep_whole_lines(const IsLine& is_line);

  std::filesystem::path file_, part_, description_;
  FileLock lock_;  // of FILE.part
  std::int64_t lines_ = 0;
  std::ofstream out_;
};

}  // namespace tbdsim
