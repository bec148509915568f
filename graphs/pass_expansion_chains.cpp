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
    const auto steps_of_products = [&](const Kernel& kernel) {
      return kernel.layer == first_layer_ + i && kernel.kind == KernelKind::gemm && kernel.repeat > repeat_;
    };
    recurrent[static_cast<std::size_t>(i)] =
        layer(i).steps == 1 &&
        std::any_of(step_.kernels.begin() + forward_of(i).first,
                    step_.kernels.begin() + std::min(forward_of(i).last + 1, end), steps_of_products);
  }
  chains_ = independent_chains(graph_, recurrent);
  const auto from = [&](int i) { return i < count() ? forward_of(i).first : end; };
  for (const IndependentChains& c : chains_) append({from(c.first), from(c.second), from(c.end)}, step_);
}

void PassExpansion::backward_chains() {
  const int end = static_cast<int>(step_.kernels.size());
  const auto from = [&](int i) { return i >= 0 ? backward_of(i).first : end; };
  for (auto c = chains_.rbegin(); c != chains_.rend(); ++c)
    append({from(c->end - 1), from(c->second - 1), from(c->first - 1)}, step_);
}

}  // namespace tbdsim
