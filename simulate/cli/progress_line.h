// Progress of long work on one line of the terminal.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>

#include "hwspecs/base/program.h"

namespace tbdsim {

// Shows the rows done, the number of all rows and the seconds left, at most four times a second and only on a
// terminal. Every call throws Interrupted after a signal.
class ProgressLine {
 public:
  ProgressLine(const ProgramContext& context, bool quiet)
      : context_(context), shows_(context.show_progress && !quiet) {}
  ~ProgressLine() { end(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void operator()(std::size_t rows, std::size_t of);  // `of` 0: their number is unknown
  void end();                                         // goes to the next line of the terminal

 private:
  using Time = std::chrono::steady_clock::time_point;
  struct First {  // rows may have been there before
    std::size_t rows;
    Time time;
  };

  [[nodiscard]] std::string bar(std::size_t rows, std::size_t of, Time now) const;

  const ProgramContext& context_;
  bool shows_;
  std::optional<First> first_;
  Time last_ = std::chrono::steady_clock::now();
  bool shown_ = false;
};

}  // namespace tbdsim
