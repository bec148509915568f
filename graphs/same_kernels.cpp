#include "graphs/same_kernels.h"

#include <string_view>
#include <tuple>
#include <unordered_map>

namespace tbdsim {
namespace {

// All that a kernel's time depends on; fields that differ most often come first, so that comparisons end
// early.
using Cost =
    std::tuple<Size, Size, Size, KernelKind, Phase, MathType, std::int64_t, KernelShape, std::string_view>;

// A hash of the sizes, which differ where most else does.
struct HashOfSizes {
  std::size_t operator()(const Cost& cost) const {
    constexpr std::uint64_t kMultiplier = 0x9E3779B97F4A7C15;  // 2^64 over the golden ratio
    constexpr int kHalf = 32;
    std::uint64_t hash = static_cast<std::uint64_t>(std::get<Phase>(cost));
    for (const Size& size : {std::get<0>(cost), std::get<1>(cost), std::get<2>(cost)}) {
      for (const std::int64_t part : {size.fixed, size.per_sample}) {
        hash = (hash ^ static_cast<std::uint64_t>(part)) * kMultiplier;
        hash ^= hash >> kHalf;
      }
    }
    return hash;
  }
};

}  // namespace

void mark_duplicates(std::vector<Kernel>& kernels) {
  std::unordered_map<Cost, int, HashOfSizes> known;
  for (std::size_t k = 0; k < kernels.size(); ++k) {
    Kernel& kernel = kernels[k];
    kernel.duplicate_of = -1;
    if (kernel.tf32_only && kernel.kind == KernelKind::transpose) continue;  // may run, or not
    const Cost cost{kernel.read_bytes, kernel.written_bytes, kernel.flops, kernel.kind, kernel.phase,
                    kernel.math,       kernel.element_bytes, kernel.shape, kernel.op};
    const auto [first, added] = known.try_emplace(cost, static_cast<int>(k));
    kernel.duplicate_of = added ? -1 : first->second;
  }
}

std::vector<KernelRuns> kernel_runs(const std::vector<Kernel>& kernels) {
  std::vector<KernelRuns> runs;
  std::vector<std::size_t> place(kernels.size());  // in them, of kernels that are the first
  for (std::size_t k = 0; k < kernels.size(); ++k) {
    const Kernel& kernel = kernels[k];
    const bool first = kernel.duplicate_of < 0;
    if (first) {
      place[k] = runs.size();
      runs.push_back({.kernel = k});
    }
    KernelRuns& same = runs[place[first ? k : static_cast<std::size_t>(kernel.duplicate_of)]];
    same.times += kernel.repeat;
    same.squares += static_cast<double>(kernel.repeat) * static_cast<double>(kernel.repeat);
  }
  return runs;
}

}  // namespace tbdsim
