#include "calibrate/measure/run/progress.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <ostream>

namespace tbdsim::measure {
namespace {
constexpr std::size_t kBar = 20;    // characters
constexpr std::size_t kLine = 118;  // longest line on a terminal
constexpr double kLogSteps = 20;    // a log line at least every 5 %
constexpr double kRounding = 1e-9;
constexpr double kLogSeconds = 20;
constexpr double kMinute = 60;

std::string print(const char* format, auto... values) {
  std::array<char, 256> text{};
  std::snprintf(text.data(), text.size(), format, values...);
  return text.data();
}

// 1.5e13 -> "15 T"
std::string rate(double value) {
  if (value >= 1e12) return print("%8.2f T", value / 1e12);
  if (value >= 1e9) return print("%8.2f G", value / 1e9);
  return print("%8.2f M", value / 1e6);
}
}  // namespace

std::string progress_line(std::size_t done, std::size_t points, double elapsed_s, double limit_s,
                          const std::string& current) {
  const double share = points == 0 ? 1 : static_cast<double>(done) / static_cast<double>(points);
  const auto filled = static_cast<std::size_t>(share * static_cast<double>(kBar));
  std::string line = "[" + std::string(filled, '#') + std::string(kBar - filled, '.') + "]";
  line += print(" %3.0f %%  %zu/%zu  ", 100 * share, done, points);
  line += limit_s > 0 ? print("%.1f of %.1f min", elapsed_s / kMinute, limit_s / kMinute)
                      : print("%.1f min", elapsed_s / kMinute);
  return line + "  " + current;
}

Progress::Progress(std::ostream& out, bool terminal, std::size_t points, double limit_s)
    : out_(out), terminal_(terminal), points_(points), limit_s_(limit_s) {}

void Progress::show(std::size_t done, double elapsed_s, const std::string& current) {
  std::string line = progress_line(done, points_, elapsed_s, limit_s_, current);
  if (terminal_) {
    line.resize(std::min(line.size(), kLine));
    const std::size_t width = line.size();
    if (width < drawn_) line.append(drawn_ - width, ' ');
    out_ << '\r' << line << std::flush;
    drawn_ = width;
    return;
  }
  const double share = points_ == 0 ? 1 : static_cast<double>(done) / static_cast<double>(points_);
  const int step = static_cast<int>(share * kLogSteps + kRounding);
  if (step == shown_step_ && elapsed_s < shown_at_s_ + kLogSeconds) return;
  shown_step_ = step;
  shown_at_s_ = elapsed_s;
  out_ << line << std::endl;
}

void Progress::say(const std::string& line) {
  if (drawn_ > 0) out_ << '\r' << std::string(drawn_, ' ') << '\r';
  drawn_ = 0;
  out_ << line << std::endl;
}

void Progress::finish() {
  if (drawn_ > 0) out_ << std::endl;
  drawn_ = 0;
}

void Highlights::add(const PlanPoint& point, double time_s) {
  if (time_s <= 0) return;
  const std::string name = point.op + (point.phase.empty() ? "" : " " + point.phase) + " " + point.precision;
  const Work work = work_of(point);
  Best& best = best_[name];
  best.shortest_s = best.points == 0 ? time_s : std::min(best.shortest_s, time_s);
  ++best.points;
  best.flop_per_s = std::max(best.flop_per_s, work.flops / time_s);
  best.bytes_per_s = std::max(best.bytes_per_s, work.bytes / time_s);
}

std::string Highlights::text() const {
  std::string text =
      print("%-36s %6s %14s %14s %12s\n", "best rates (guessed bytes)", "rows", "flop/s", "B/s", "shortest");
  for (const auto& [name, best] : best_) {
    text += print("%-36s %6d %14s %14s %9.1f us\n", name.c_str(), best.points, rate(best.flop_per_s).c_str(),
                  rate(best.bytes_per_s).c_str(), best.shortest_s * 1e6);
  }
  return text;
}

}  // namespace tbdsim::measure
