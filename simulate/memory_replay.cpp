#include "simulate/memory_replay.h"

#include <algorithm>
#include <cstddef>
#include <set>

#include "simulate/memory_breakdown.h"

namespace tbdsim {
namespace {

constexpr std::int64_t kMostPieces = 10'000;  // of a tensor; more are taken for as many larger ones

class Replay {
 public:
  explicit Replay(const Prediction& p)
      : iteration_(largest_iteration(p)),
        moments_(memory_over_time(iteration_)),
        arena_(p.framework->allocator.arena),
        born_(moments_.size()),
        dies_(moments_.size()),
        addresses_(iteration_.step->tensors.size()),
        ends_(moments_.size()) {
    const int last = static_cast<int>(moments_.size()) - 1;
    const std::vector<Tensor>& tensors = iteration_.step->tensors;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      if (tensors[i].bytes == Size{}) continue;
      if (tensors[i].first_use == 0 && tensors[i].last_use == last) {
        take(i);  // stays from one iteration to the next
      } else {
        born_[static_cast<std::size_t>(tensors[i].first_use)].push_back(i);
        dies_[static_cast<std::size_t>(tensors[i].last_use)].push_back(i);
      }
    }
  }

  ArenaRun run() {
    ArenaRun result;
    const auto events = [this] { return arena_.events().begin(); };
    result.first = arena_.events().size();
    iterate(nullptr);
    const std::size_t second = arena_.events().size();
    iterate(&result.at_peak);
    result.use = arena_.use();
    result.events.assign(events(), events() + static_cast<std::ptrdiff_t>(result.first));
    result.events.insert(result.events.end(), events() + static_cast<std::ptrdiff_t>(second),
                         arena_.events().end());
    result.kernels.assign(result.first, 0);
    for (std::size_t k = 0; k < ends_.size(); ++k) result.kernels.resize(ends_[k] - second + result.first, k);
    std::set<std::uint64_t> small;
    for (const ArenaBlock& block : result.at_peak) {
      if (arena_.is_small(block.segment)) small.insert(block.segment);
    }
    result.small_segments.assign(small.begin(), small.end());
    return result;
  }

 private:
  void take(std::size_t tensor) {
    const Tensor& of = iteration_.step->tensors[tensor];
    const double all = of.bytes.at(static_cast<double>(iteration_.batch));
    const std::int64_t pieces = std::min(of.pieces, kMostPieces);
    const auto each = static_cast<std::uint64_t>(all / static_cast<double>(pieces));
    for (std::int64_t i = 0; i < pieces; ++i)
      addresses_[tensor].push_back(arena_.take(each, static_cast<int>(tensor)));
  }

  // Finds the kernel at which most is allocated or, given a place for them, notes the blocks there.
  void iterate(std::vector<ArenaBlock>* at_peak) {
    std::uint64_t most = 0;
    for (std::size_t k = 0; k < moments_.size(); ++k) {
      for (const std::size_t tensor : born_[k]) take(tensor);
      const auto scratch = static_cast<std::uint64_t>(moments_[k].use.workspace.si());
      const std::uint64_t address = scratch > 0 ? arena_.take(scratch, -1 - static_cast<int>(k)) : 0;
      if (at_peak != nullptr && k == peak_) *at_peak = arena_.blocks();
      if (at_peak == nullptr && arena_.allocated() > most) {
        most = arena_.allocated();
        peak_ = k;
      }
      if (scratch > 0) arena_.give_back(address);
      for (const std::size_t tensor : dies_[k]) {
        for (const std::uint64_t piece : addresses_[tensor]) arena_.give_back(piece);
        addresses_[tensor].clear();
      }
      ends_[k] = arena_.events().size();
    }
  }

  const Iteration& iteration_;
  std::vector<MemoryMoment> moments_;
  MemoryArena arena_;
  std::vector<std::vector<std::size_t>> born_, dies_;  // tensors by kernel
  std::vector<std::vector<std::uint64_t>> addresses_;  // of each tensor's pieces
  std::vector<std::size_t> ends_;                      // events until the end of each kernel
  std::size_t peak_ = 0;
};

}  // namespace

ArenaRun replay(const Prediction& prediction) { return Replay(prediction).run(); }

}  // namespace tbdsim
