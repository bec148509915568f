#include "graphs/layers/wide_terms.h"

namespace tbdsim {

void append_wide_terms(std::span<const WideTerm> terms, const WideSizes& sizes, Phase phase,
                       const Precision& precision, std::vector<Kernel>& kernels) {
  const auto bytes = [&](std::int64_t stored, std::int64_t wide) {
    if (stored + wide == 0) return sizes.statistics * kFp32Bytes;
    return sizes.elements * (stored * precision.storage_bytes + wide * kFp32Bytes);
  };
  for (const WideTerm& term : terms) {
    if (term.conversion && is_wide(precision)) continue;
    const bool reads = term.stored_reads + term.wide_reads > 0;
    const bool writes = term.stored_writes + term.wide_writes > 0;
    const KernelKind kind = reads && !writes ? KernelKind::reduction : KernelKind::elementwise;
    Kernel kernel =
        memory_kernel(kind, phase, term.op, {reads || writes ? sizes.elements : sizes.statistics, {}}, 1,
                      bytes(term.stored_reads, term.wide_reads), bytes(term.stored_writes, term.wide_writes));
    kernel.scratch_bytes = sizes.elements * (sizes.scratch * kFp32Bytes);
    kernel.repeat = term.times;
    kernels.push_back(kernel);
  }
}

}  // namespace tbdsim
