// Processes that an MPI launcher started for one command: one process without a launcher, or where the
// program was built without MPI.
#pragma once

#include <string>

namespace tbdsim {

struct Ranks {
  int rank = 0;
  int count = 1;
};

// Initialises MPI if `launched`, and finalises it; one for the life of the process, made by main().
class RankSession {
 public:
  explicit RankSession(bool launched);
  ~RankSession();
  RankSession(const RankSession&) = delete;
  RankSession& operator=(const RankSession&) = delete;
};

// Ends all ranks (MPI_Abort), since others may wait for messages of this one. Returns if there is one rank.
void end_ranks(int exit_code);

[[nodiscard]] bool built_with_ranks();
[[nodiscard]] Ranks ranks();
// Blocks until the receiver has the message.
void send(int to, const std::string& bytes);
[[nodiscard]] std::string receive(int from);

}  // namespace tbdsim
