#include "simulate/cli/progress_line.h"

#include <ostream>

#include <fmt/format.h>

namespace tbdsim {

void ProgressLine::end() {
  if (shown_) context_.err << '\n';
  shown_ = false;
}

void ProgressLine::operator()(std::size_t rows, std::size_t of) {
  stop_if_interrupted(context_);
  if (!shows_ || (rows == 0 && of == 0)) return;
  const auto now = std::chrono::steady_clock::now();
  if (!first_) first_ = {rows, now};
  if (now - last_ < std::chrono::milliseconds(250)) return;
  last_ = now;
  shown_ = true;
  context_.err << '\r' << (of == 0 ? fmt::format("{} rows", rows) : bar(rows, of, now)) << std::flush;
}

// "[#####.....]  51 %  514,048 of 1,000,000, 11 s left "
std::string ProgressLine::bar(std::size_t rows, std::size_t of, Time now) const {
  constexpr std::size_t kWidth = 30;
  const std::size_t full = kWidth * rows / of;
  const double seconds = std::chrono::duration<double>(now - first_->time).count();
  const auto done = static_cast<double>(rows - first_->rows);
  const double left = done > 0 ? seconds / done * static_cast<double>(of - rows) : 0;
  return fmt::format("[{}{}] {:3} %  {} of {}, {:.0f} s left  ", std::string(full, '#'),
                     std::string(kWidth - full, '.'), 100 * rows / of, rows, of, left);
}

}  // namespace tbdsim
