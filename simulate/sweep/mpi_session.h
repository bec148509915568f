// Processes that an MPI launcher started to work on one command together; alone where none did, or where the
// program was built without MPI.
#pragma once

#include <string>

namespace tbdsim {

struct Ranks {
  int rank = 0;
  int count = 1;
};

// Joins the others; one for the life of the process, made by main() when a launcher started it.
class RankSession {
 public:
  explicit RankSession(bool launched);
  ~RankSession();
  RankSession(const RankSession&) = delete;
  RankSession& operator=(const RankSession&) = delete;
};

// Ends all ranks: the others may wait for what this one will never send or receive. Returns where it is
// alone.
void end_ranks(int exit_code);

[[nodiscard]] bool built_with_ranks();
[[nodiscard]] Ranks ranks();
// Returns when the receiver has it, so that nothing piles up.
void send(int to, const std::string& bytes);
[[nodiscard]] std::string receive(int from);

}  // namespace tbdsim
