// The command line as a function, so that tests run it in-process. The only place outside main() that knows
// clocks and terminals.
#pragma once

#include <atomic>
#include <filesystem>
#include <iosfwd>
#include <span>
#include <string>

namespace tbdsim {

struct CliContext {
  std::ostream& out;
  std::ostream& err;
  std::filesystem::path data_dir;  // unless --data-dir says otherwise
  bool show_progress = false;      // err is a terminal
  // Called before work that can be long begins: from then on a signal only sets `interrupted`, and the work
  // stops without leaving a half-written file. Without these a signal ends the program.
  void (*catch_signals)() = nullptr;
  const std::atomic<bool>* interrupted = nullptr;
};

// Exit codes: 0 ok (also "does not fit"), 2 wrong usage or file, 130 interrupted. Other exceptions are bugs
// and pass through.
inline constexpr int kExitOk = 0;
inline constexpr int kExitUsage = 2;
inline constexpr int kExitInterrupted = 130;

[[nodiscard]] int run_cli(std::span<const std::string> arguments, const CliContext& context);

}  // namespace tbdsim
