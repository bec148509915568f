#include "graphs/layers/terms.h"

namespace tbdsim {

TermSizes position_sizes(const Shape& shape, std::int64_t scratch) {
  return {elements(shape), positions(shape), elements(shape) * scratch};
}

void append_terms(std::span<const Term> terms, const TermSizes& sizes, Phase phase,
                  const Precision& precision, std::vector<Kernel>& kernels) {
  const auto bytes = [&](std::int64_t tensors) {
    return tensors > 0 ? sizes.elements * tensors * precision.storage_bytes : sizes.statistics * kFp32Bytes;
  };
  for (const Term& term : terms) {
    const bool sums = term.reads > 0 && term.writes == 0;
    const bool whole = term.reads > 0 || term.writes > 0;
    Kernel kernel = memory_kernel(sums ? KernelKind::reduction : KernelKind::elementwise, phase, term.op,
                                  {whole ? sizes.elements : sizes.statistics, {}}, 1, bytes(term.reads),
                                  bytes(term.writes));
    kernel.scratch_bytes = sizes.scratch * precision.storage_bytes;
    kernel.repeat = term.times;
    kernels.push_back(kernel);
  }
}

}  // namespace tbdsim
