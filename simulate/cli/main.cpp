#include <csignal>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <string>
#include <vector>

#include <unistd.h>

#include "simulate/cli/cli.h"
#include "simulate/sweep/mpi_session.h"

namespace {

std::atomic<bool> interrupted = false;

void interrupt(int signal) {
  interrupted = true;
  std::signal(signal, SIG_DFL);  // a second one ends the program at once
}

void catch_signals() {
  std::signal(SIGINT, interrupt);
  std::signal(SIGTERM, interrupt);
}

// The catalogue: TBDSIM_DATA_DIR, else beside an installed program, else the source tree it was built from.
std::filesystem::path data_dir() {
  if (const char* named = std::getenv("TBDSIM_DATA_DIR"); named != nullptr && *named != '\0') return named;
  std::error_code failure;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", failure);
  const auto installed = program.parent_path().parent_path() / TBDSIM_INSTALLED_DATA_DIR;
  if (!failure && std::filesystem::is_directory(installed, failure)) return installed;
  return TBDSIM_SOURCE_DATA_DIR;
}

// Open MPI's and MPICH's launchers, and Slurm's with either, say so.
bool launched_by_mpi() {
  return std::getenv("OMPI_COMM_WORLD_SIZE") != nullptr || std::getenv("PMI_SIZE") != nullptr ||
         std::getenv("PMIX_RANK") != nullptr;
}

int run(int argc, char** argv) {
  try {
    const std::vector<std::string> arguments(argv + 1, argv + argc);
    const tbdsim::CliContext context{.out = std::cout,
                                     .err = std::cerr,
                                     .data_dir = data_dir(),
                                     .show_progress = ::isatty(STDERR_FILENO) != 0,
                                     .catch_signals = catch_signals,
                                     .interrupted = &interrupted};
    return tbdsim::run_cli(arguments, context);
  } catch (const std::exception& bug) {
    std::cerr << "tbd-sim: internal error: " << bug.what() << '\n';
    return 1;
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::ios::sync_with_stdio(false);
  const tbdsim::RankSession session(launched_by_mpi());
  const int code = run(argc, argv);
  if (code != 0) tbdsim::end_ranks(code);
  return code;
}
