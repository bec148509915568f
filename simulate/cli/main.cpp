#include <cstdlib>

#include "simulate/cli/cli.h"
#include "simulate/cli/huge_pages.h"
#include "simulate/sweep/mpi_session.h"

namespace {

// True for a process started by the launchers of Open MPI or MPICH, or by Slurm's with either.
bool launched_by_mpi() {
  return std::getenv("OMPI_COMM_WORLD_SIZE") != nullptr || std::getenv("PMI_SIZE") != nullptr ||
         std::getenv("PMIX_RANK") != nullptr;
}

}  // namespace

int main(int argc, char** argv) {
#ifdef TBDSIM_TCMALLOC
  tbdsim::use_huge_pages(std::size_t{64} << 20);
#endif
  const tbdsim::RankSession session(launched_by_mpi());
  const int code = tbdsim::run_program("tbd-sim", tbdsim::run_cli, argc, argv);
  if (code != 0) tbdsim::end_ranks(code);
  return code;
}
