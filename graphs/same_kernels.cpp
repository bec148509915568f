#include "graphs/same_kernels.h"

#include <map>
#include <tuple>

namespace tbdsim {

void mark_duplicates(std::vector<Kernel>& kernels) {
  // All that a kernel's time depends on; fields that differ most often come first, so that comparisons end
  // early.
  using Cost =
      std::tuple<Size, Size, Size, KernelKind, Phase, MathType, std::int64_t, KernelShape, std::string_view>;
  std::map<Cost, int> known;
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
