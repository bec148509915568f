// The CSV of a measuring run: created or continued, one write per point, never left with half a point after
// an interrupt or a full disk. POSIX files, so that errors have their reason.
#pragma once

#include <set>
#include <span>
#include <string>
#include <vector>

#include "calibrate/records/record.h"

namespace tbdsim::measure {

class ResultFile {
 public:
  // Creates PATH with a header row, or continues it: an unfinished last line (and the other rows of the same
  // point) is dropped. Throws UsageError when the file cannot be opened, is in use by another run, or holds
  // something else than records; SpecError when one of its rows is malformed.
  explicit ResultFile(std::string path);
  ~ResultFile();
  ResultFile(const ResultFile&) = delete;
  ResultFile& operator=(const ResultFile&) = delete;

  // Appends the rows of one point. Throws UsageError with the reason (disk full) after restoring the file's
  // previous, whole length: every earlier point is safe.
  void append(std::span<const Record> rows);

  // True when the file has rows of this point from this GPU and library.
  [[nodiscard]] bool has(const std::string& gpu, const std::string& generation,
                         const std::string& point) const;
  [[nodiscard]] std::size_t rows() const { return rows_; }
  // Messages about what was repaired while opening.
  [[nodiscard]] const std::vector<std::string>& notes() const { return notes_; }

 private:
  void open_and_lock();
  void read_and_repair();
  void write_all(const std::string& text);

  std::string path_;
  int file_ = -1;
  std::int64_t size_ = 0;
  std::set<std::string> done_;
  std::size_t rows_ = 0;
  std::vector<std::string> notes_;
};

}  // namespace tbdsim::measure
