#include "hwspecs/base/program.h"

#include <csignal>
#include <cstdlib>
#include <iostream>
#include <vector>

#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <unistd.h>

namespace tbdsim {
namespace {

std::atomic<bool> interrupted = false;

void interrupt(int signal) {
  interrupted = true;
  std::signal(signal, SIG_DFL);  // a second signal ends the program at once
}

void catch_signals() {
  std::signal(SIGINT, interrupt);
  std::signal(SIGTERM, interrupt);
}

// Memory that was freed stays with the program: it is asked for again at once, and each page that the kernel
// hands out anew costs a fault.
void keep_freed_memory() {
#ifdef __GLIBC__
  constexpr int kKept = 1 << 28;   // bytes
  constexpr int kAhead = 1 << 24;  // requested beyond what is needed
  mallopt(M_TRIM_THRESHOLD, kKept);
  mallopt(M_MMAP_THRESHOLD, kKept);
  mallopt(M_TOP_PAD, kAhead);
#endif
}

std::filesystem::path data_dir() {
  if (const char* named = std::getenv("TBDSIM_DATA_DIR"); named != nullptr && *named != '\0') return named;
  std::error_code failure;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", failure);
  const auto installed = program.parent_path().parent_path() / TBDSIM_INSTALLED_DATA_DIR;
  if (!failure && std::filesystem::is_directory(installed, failure)) return installed;
  return TBDSIM_SOURCE_DATA_DIR;
}

}  // namespace

void stop_if_interrupted(const ProgramContext& context) {
  if (context.interrupted != nullptr && context.interrupted->load()) throw Interrupted();
}

int run_program(const char* name, CommandLineFunction run, int argc, char** argv) {
  std::ios::sync_with_stdio(false);
  keep_freed_memory();
  try {
    const std::vector<std::string> arguments(argv + 1, argv + argc);
    return run(arguments, {.out = std::cout,
                           .err = std::cerr,
                           .data_dir = data_dir(),
                           .out_is_terminal = ::isatty(STDOUT_FILENO) != 0,
                           .show_progress = ::isatty(STDERR_FILENO) != 0,
                           .catch_signals = catch_signals,
                           .interrupted = &interrupted});
  } catch (const std::exception& bug) {
    std::cerr << name << ": internal error: " << bug.what() << '\n';
    return 1;
  }
}

}  // namespace tbdsim
