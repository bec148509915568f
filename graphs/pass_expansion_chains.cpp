// The independent chains of a pass's kernels: those of the graph's layers, forward and, in reverse order,
// backward. A step-by-step recurrence is a layer with GEMMs in every step.
#include <algorithm>

#include "graphs/pass_expansion.h"

namespace tbdsim {
namespace {

void append(const IndependentChains& kernels, TrainingStep& step) {
  if (kernels.first < kernels.second && kernels.second < kernels.end) step.chains.push_back(kernels);
}

}  // namespace

void PassExpansion::forward_chains() {
  const int end = static_cast<int>(step_.kernels.size());
  std::vector<bool> recurrent(graph_.layers.size(), false);
  for (int i = 0; i < count(); ++i) {
    const auto is_gemm_of_step = [&](const Kernel& kernel) {
      return kernel.layer == first_layer_ + i && kernel.kind == KernelKind::gemm && kernel.repeat > repeat_;
    };
    const auto first = step_.kernels.begin() + forward_of(i).first;
    const auto last = step_.kernels.begin() + std::min(forward_of(i).last + 1, end);
    const bool unrolled = layer(i).steps == 1 && std::any_of(first, last, is_gemm_of_step);
    recurrent[static_cast<std::size_t>(i)] = unrolled;
  }
  chains_ = independent_chains(graph_, recurrent);
  const auto first_kernel = [&](int i) { return i < count() ? forward_of(i).first : end; };
  for (const IndependentChains& c : chains_)
    append({first_kernel(c.first), first_kernel(c.second), first_kernel(c.end)}, step_);
}

void PassExpansion::backward_chains() {
  const int end = static_cast<int>(step_.kernels.size());
  const auto first_kernel = [&](int i) { return i >= 0 ? backward_of(i).first : end; };
  for (auto c = chains_.rbegin(); c != chains_.rend(); ++c)
    append({first_kernel(c->end - 1), first_kernel(c->second - 1), first_kernel(c->first - 1)}, step_);
}

}  // namespace tbdsim
