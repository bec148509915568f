// The GPUs that train one model together.
#pragma once

#include <cstdint>
#include <string>

namespace tbdsim {

// Machines are alike, and so are their GPUs.
struct Cluster {
  int gpus = 1;  // in each machine
  int machines = 1;
  std::string machine{};  // of the catalogue, or a path; empty: one synthesized from `network`
  // With a machine: the name of one of its networks, another link, or a rate ("25 Gbit/s"). Without: a word
  // of synthesize_machine().
  std::string network{};
  std::string method{};       // a SyncMethod's name; empty: the framework's
  double gradient_bytes = 0;  // bytes of one gradient as it is sent; 0: as the precision stores it
  double compression = 1;     // part of these bytes that is sent, above 0 and up to 1

  // GPUs in all.
  [[nodiscard]] std::int64_t ranks() const { return static_cast<std::int64_t>(gpus) * machines; }
};

// Throws UsageError for fewer than one GPU or machine, more than ten million GPUs, or a compression or width
// of gradients out of range.
void require_cluster(const Cluster& cluster);

}  // namespace tbdsim
