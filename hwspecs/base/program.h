// The context of a program (streams, data directory, signals) and the common start and end of the project's
// programs.
#pragma once

#include <atomic>
#include <exception>
#include <filesystem>
#include <iosfwd>
#include <span>
#include <string>

namespace tbdsim {

struct ProgramContext {
  std::ostream& out;
  std::ostream& err;
  std::filesystem::path data_dir;  // where the catalogue lies, unless --data-dir says otherwise
  bool out_is_terminal = false;
  bool show_progress = false;  // err is a terminal
  // Called before work that can be long begins: from then on a signal only sets `interrupted`, and the work
  // stops without leaving a half-written file. Without these a signal ends the program.
  void (*catch_signals)() = nullptr;
  const std::atomic<bool>* interrupted = nullptr;
};

// Exit codes: 0 ok (also "does not fit"), 2 wrong usage or file, 130 interrupted.
inline constexpr int kExitOk = 0;
inline constexpr int kExitUsage = 2;
inline constexpr int kExitInterrupted = 130;

// Thrown out of long work, so that everything is cleaned up.
class Interrupted : public std::exception {};

// Throws Interrupted after a signal.
void stop_if_interrupted(const ProgramContext& context);

// A command line as a function: the exit code of its arguments.
using CommandLineFunction = int (*)(std::span<const std::string> arguments, const ProgramContext& context);

// Runs it on main()'s arguments with the standard streams, and returns its exit code. An exception that
// leaves it is a bug: it is printed and the code is 1. The catalogue is the folder TBDSIM_DATA_DIR names,
// else the one beside the installed program, else the source tree the program was built from.
[[nodiscard]] int run_program(const char* name, CommandLineFunction run, int argc, char** argv);

}  // namespace tbdsim
