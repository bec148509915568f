#include "graphs/same_kernels.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace tbdsim {
namespace {

// All that a kernel's time depends on.
auto work_of(const Kernel& k) {
  return std::tie(k.read_bytes, k.written_bytes, k.flops, k.kind, k.phase, k.math, k.element_bytes, k.shape,
                  k.op, k.access);
}

// A hash of the sizes, which differ where most else does.
std::uint64_t hash_of_sizes(const Kernel& kernel) {
  constexpr std::uint64_t kMultiplier = 0x9E3779B97F4A7C15;  // 2^64 over the golden ratio
  constexpr int kHalf = 32;
  auto hash = static_cast<std::uint64_t>(kernel.phase);
  for (const Size& size : {kernel.read_bytes, kernel.written_bytes, kernel.flops}) {
    for (const std::int64_t part : {size.fixed, size.per_sample}) {
      hash = (hash ^ static_cast<std::uint64_t>(part)) * kMultiplier;
      hash ^= hash >> kHalf;
    }
  }
  return hash;
}

}  // namespace

void mark_duplicates(std::vector<Kernel>& kernels) {
  std::multimap<std::uint64_t, int> known;  // the first kernels of each work, by its hash
  for (std::size_t k = 0; k < kernels.size(); ++k) {
    Kernel& kernel = kernels[k];
    kernel.duplicate_of = -1;
    if (kernel.tf32_only && kernel.kind == KernelKind::transpose) continue;  // may run, or not
    const std::uint64_t hash = hash_of_sizes(kernel);
    const auto [begin, end] = known.equal_range(hash);
    const auto same = std::find_if(begin, end, [&](const auto& other) {
      return work_of(kernels[static_cast<std::size_t>(other.second)]) == work_of(kernel);
    });
    if (same == end) {
      known.emplace_hint(end, hash, static_cast<int>(k));
    } else {
      kernel.duplicate_of = same->second;
    }
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
