#include <mpi.h>

#include "simulate/sweep/mpi_session.h"

namespace tbdsim {
namespace {

constexpr int kTag = 1;

bool joined() {
  int yes = 0;
  MPI_Initialized(&yes);
  return yes != 0;
}

}  // namespace

RankSession::RankSession(bool launched) {
  if (launched) MPI_Init(nullptr, nullptr);
}

RankSession::~RankSession() {
  if (joined()) MPI_Finalize();
}

void end_ranks(int exit_code) {
  if (ranks().count > 1) MPI_Abort(MPI_COMM_WORLD, exit_code);
}

bool built_with_ranks() { return true; }

Ranks ranks() {
  Ranks ranks;
  if (!joined()) return ranks;
  MPI_Comm_rank(MPI_COMM_WORLD, &ranks.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks.count);
  return ranks;
}

void send(int to, const std::string& bytes) {
  MPI_Ssend(bytes.data(), static_cast<int>(bytes.size()), MPI_CHAR, to, kTag, MPI_COMM_WORLD);
}

std::string receive(int from) {
  MPI_Status status;
  MPI_Probe(from, kTag, MPI_COMM_WORLD, &status);
  int size = 0;
  MPI_Get_count(&status, MPI_CHAR, &size);
  std::string bytes(static_cast<std::size_t>(size), '\0');
  MPI_Recv(bytes.data(), size, MPI_CHAR, from, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  return bytes;
}

}  // namespace tbdsim
