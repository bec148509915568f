// tbd-calibrate's command line as a function, so that tests run it in-process.
#pragma once

#include <atomic>
#include <filesystem>
#include <iosfwd>
#include <span>
#include <string>

namespace tbdsim {

struct CalibrateContext {
  std::ostream& out;
  std::ostream& err;
  std::filesystem::path data_dir;  // where the catalogue lies
  bool show_progress = false;      // err is a terminal
  // From the first row on a signal only sets `interrupted`: no half-written file stays behind.
  void (*catch_signals)() = nullptr;
  const std::atomic<bool>* interrupted = nullptr;
};

// Exit codes as tbd-sim's: 0 ok, 2 wrong usage or file, 130 interrupted. Other exceptions are bugs.
[[nodiscard]] int run_calibrate(std::span<const std::string> arguments, const CalibrateContext& context);

}  // namespace tbdsim
