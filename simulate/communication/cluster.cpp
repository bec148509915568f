#include "simulate/communication/cluster.h"

#include "hwspecs/base/error.h"

namespace tbdsim {
namespace {

constexpr std::int64_t kMostRanks = 10'000'000;

}  // namespace

void require_cluster(const Cluster& cluster) {
  const auto fail = [](const std::string& what) { throw UsageError(what); };
  if (cluster.gpus < 1 || cluster.machines < 1 || cluster.ranks() > kMostRanks)
    fail(std::to_string(cluster.gpus) + " GPUs in each of " + std::to_string(cluster.machines) +
         " machines; expected 1 to 10000000 GPUs in all");
  if (!(cluster.compression > 0 && cluster.compression <= 1))
    fail("compression " + std::to_string(cluster.compression) +
         " is out of range; expected above 0, up to 1");
  if (!(cluster.gradient_bytes >= 0 && cluster.gradient_bytes <= 8))
    fail("gradients of " + std::to_string(cluster.gradient_bytes) + " bytes; expected up to 8");
}

}  // namespace tbdsim
