#include "costmodel/communication/nvlink_rings.h"

#include <algorithm>
#include <functional>
#include <vector>

namespace tbdsim {
namespace {

constexpr int kMostSearched = 8;    // GPUs; boards wire no more in pairs
constexpr int kMostTries = 20'000;  // rings added before the search ends with its best result

// Number of NVLinks between every two GPUs that no cycle uses yet.
class Wires {
 public:
  Wires(const NvLink& nvlink, int gpus) : gpus_(gpus), links_(static_cast<std::size_t>(gpus * gpus)) {
    for (const NvLinkPair& pair : nvlink.pairs) {
      if (pair.a < gpus && pair.b < gpus) use(pair.a, pair.b, -pair.links);
    }
  }

  [[nodiscard]] int between(int a, int b) const { return links_[at(a, b)]; }
  void use(int a, int b, int count = 1) {
    links_[at(a, b)] -= count;
    if (a != b) links_[at(b, a)] -= count;
  }
  // Upper bound of the number of cycles: half the links of the GPU with the fewest.
  [[nodiscard]] int most_cycles() const {
    int least = links_of(0);
    for (int g = 1; g < gpus_; ++g) least = std::min(least, links_of(g));
    return least / 2;
  }

 private:
  [[nodiscard]] std::size_t at(int a, int b) const { return static_cast<std::size_t>(a * gpus_ + b); }
  [[nodiscard]] int links_of(int g) const {
    int sum = 0;
    for (int other = 0; other < gpus_; ++other) sum += between(g, other);
    return sum;
  }

  int gpus_;
  std::vector<int> links_;
};

// Calls visit(path) for each extension of `path` along free links to all GPUs, until one call returns true;
// returns whether one did.
bool each_path(const Wires& wires, int gpus, std::vector<int>& path,
               const std::function<bool(const std::vector<int>&)>& visit) {
  if (static_cast<int>(path.size()) == gpus) return visit(path);
  for (int next = 0; next < gpus; ++next) {
    const bool taken = std::find(path.begin(), path.end(), next) != path.end();
    if (taken || wires.between(path.back(), next) == 0) continue;
    path.push_back(next);
    if (each_path(wires, gpus, path, visit)) return true;
    path.pop_back();
  }
  return false;
}

// Each cycle of free links through all GPUs once, from GPU 0, in one of its two directions.
std::vector<std::vector<int>> cycles_of(const Wires& wires, int gpus) {
  std::vector<std::vector<int>> cycles;
  std::vector<int> path{0};
  each_path(wires, gpus, path, [&](const std::vector<int>& found) {
    if (wires.between(found.back(), 0) > 0 && found[1] < found.back()) cycles.push_back(found);
    return false;
  });
  return cycles;
}

// Takes `count` links along each edge of the cycle; a negative count returns them. False if there were too
// few.
bool take(Wires& wires, const std::vector<int>& cycle, int count) {
  bool enough = true;
  for (std::size_t i = 0; i < cycle.size(); ++i) {
    const int a = cycle[i];
    const int b = cycle[(i + 1) % cycle.size()];
    wires.use(a, b, count);
    enough = enough && wires.between(a, b) >= 0;
  }
  return enough;
}

// Greatest number of the cycles from `first` on that share no link, at most `most`.
int packed(Wires& wires, const std::vector<std::vector<int>>& cycles, std::size_t first, int most,
           int& tries) {
  int best = 0;
  for (std::size_t c = first; c < cycles.size() && best < most && tries > 0; ++c) {
    --tries;
    if (take(wires, cycles[c], 1)) best = std::max(best, 1 + packed(wires, cycles, c, most - 1, tries));
    take(wires, cycles[c], -1);
  }
  return best;
}

}  // namespace

int nvlink_rings(const NvLink& nvlink, int gpus) {
  if (gpus < 2 || gpus > kMostSearched) return 0;
  Wires wires(nvlink, gpus);
  if (gpus == 2) return wires.between(0, 1);  // there and back over each
  int tries = kMostTries;
  return 2 * packed(wires, cycles_of(wires, gpus), 0, wires.most_cycles(), tries);
}

bool nvlink_chain(const NvLink& nvlink, int gpus) {
  if (gpus < 2 || gpus > kMostSearched) return false;
  const Wires wires(nvlink, gpus);
  for (int start = 0; start < gpus; ++start) {
    std::vector<int> path{start};
    if (each_path(wires, gpus, path, [](const std::vector<int>&) { return true; })) return true;
  }
  return false;
}

}  // namespace tbdsim
