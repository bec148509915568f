#include "graphs/same_kernels.h"

#include <map>
#include <tuple>

namespace tbdsim {

void mark_duplicates(std::vector<Kernel>& kernels) {
  using Cost =
      std::tuple<KernelKind, Phase, std::string_view, MathType, Size, Size, Size, KernelShape, std::int64_t>;
  std::map<Cost, int> known;
  for (std::size_t k = 0; k < kernels.size(); ++k) {
    Kernel& kernel = kernels[k];
    kernel.duplicate_of = -1;
    if (kernel.tf32_only && kernel.kind == KernelKind::transpose) continue;  // may run, or not
    const Cost cost{kernel.kind,       kernel.phase,         kernel.op,    kernel.math,         kernel.flops,
                    kernel.read_bytes, kernel.written_bytes, kernel.shape, kernel.element_bytes};
    const auto [first, added] = known.try_emplace(cost, static_cast<int>(k));
    kernel.duplicate_of = added ? -1 : first->second;
  }
}

}  // namespace tbdsim
