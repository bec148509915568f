#include <cassert>

#include "simulate/sweep/mpi_session.h"

namespace tbdsim {

RankSession::RankSession(bool) {}
RankSession::~RankSession() = default;

void end_ranks(int) {}

bool built_with_ranks() { return false; }
Ranks ranks() { return {}; }
void send(int, const std::string&) { assert(false && "nobody to send to"); }
std::string receive(int) {
  assert(false && "nobody to receive from");
  return {};
}

}  // namespace tbdsim
