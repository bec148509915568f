// The progress bar on standard error, and the table printed at the end.
#pragma once

#include <cstddef>
#include <iosfwd>
#include <map>
#include <string>

#include "calibrate/measure/plan/work.h"
#include "calibrate/records/record.h"

namespace tbdsim::measure {

// On a terminal one line that is redrawn; elsewhere (a log) a line whenever another 5 % or 20 s have passed.
class Progress {
 public:
  Progress(std::ostream& out, bool terminal, std::size_t points, double limit_s);

  void show(std::size_t done, double elapsed_s, const std::string& current);
  // Prints a permanent line, such as a skipped point.
  void say(const std::string& line);
  void finish();

 private:
  std::ostream& out_;
  bool terminal_;
  std::size_t points_;
  double limit_s_;
  double shown_at_s_ = -1e9;
  int shown_step_ = -1;
  std::size_t drawn_ = 0;  // width of the line on the terminal
};

// "[#####.....]  42 %  120/286  1.5 of 8.0 min  conv forward ..."
[[nodiscard]] std::string progress_line(std::size_t done, std::size_t points, double elapsed_s,
                                        double limit_s, const std::string& current);

// Best rates seen, by op, phase and precision.
class Highlights {
 public:
  void add(const PlanPoint& point, double time_s);
  [[nodiscard]] std::string text() const;

 private:
  struct Best {
    int points = 0;
    double flop_per_s = 0;
    double bytes_per_s = 0;
    double shortest_s = 0;
  };
  std::map<std::string, Best> best_;
};

}  // namespace tbdsim::measure
