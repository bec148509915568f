// The output of a long sweep: rows go to FILE.part, which takes the name FILE when all are there. What is
// half done stays after an interrupt, a full disk or a crash, and the same sweep goes on there: its output is
// the same bytes. FILE.part.sweep says of which sweep it is.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

namespace tbdsim {

class SweepFile {
 public:
  // `sweep` tells sweeps apart. Throws UsageError where FILE.part is of another sweep, or cannot be written.
  SweepFile(std::filesystem::path file, const std::string& sweep);

  [[nodiscard]] std::int64_t lines() const { return lines_; }  // that are there already, whole

  // Throws UsageError when not everything could be written (disk full); what is there stays.
  void append(const std::string& lines);
  void commit();

 private:
  void keep_whole_lines();

  std::filesystem::path file_, part_, sweep_;
  std::int64_t lines_ = 0;
  std::ofstream out_;
};

}  // namespace tbdsim
