#include "graphs/rewrites/kernel_insertions.h"

#include <utility>

#include "graphs/parameter_updates.h"

namespace tbdsim {

int KernelInsertions::before(int at, Kernel kernel, std::optional<int> copy_of) {
  const auto number = static_cast<int>(inserted_.size());
  numbers_before_[at].push_back(number);
  inserted_.push_back({std::move(kernel), copy_of});
  return number;
}

TrainingStep KernelInsertions::apply() {
  TrainingStep made = step_;
  append_kernels(made);
  move_tensors(made);
  made.updates = parameter_updates(made);
  move_chains(made);
  return made;
}

void KernelInsertions::append_kernels(TrainingStep& made) {
  made.kernels.clear();
  inserted_index_.resize(inserted_.size());
  for (std::size_t k = 0; k < step_.kernels.size(); ++k) {
    for (const int number : numbers_before_[static_cast<int>(k)]) append_inserted(number, made);
    index_.push_back(static_cast<int>(made.kernels.size()));
    Kernel& kernel = made.kernels.emplace_back(step_.kernels[k]);
    if (kernel.duplicate_of >= 0) kernel.duplicate_of = index_of(kernel.duplicate_of);
  }
  index_.push_back(static_cast<int>(made.kernels.size()));
}

void KernelInsertions::append_inserted(int number, TrainingStep& made) {
  const Inserted& inserted = inserted_[static_cast<std::size_t>(number)];
  inserted_index_[static_cast<std::size_t>(number)] = static_cast<int>(made.kernels.size());
  Kernel& kernel = made.kernels.emplace_back(inserted.kernel);
  if (!inserted.copy_of) return;
  const int original = step_.kernels[static_cast<std::size_t>(*inserted.copy_of)].duplicate_of;
  kernel.duplicate_of = index_of(original >= 0 ? original : *inserted.copy_of);
}

void KernelInsertions::move_tensors(TrainingStep& made) const {
  for (Tensor& tensor : made.tensors) {
    tensor.first_use = index_of(tensor.first_use);
    tensor.last_use = index_of(tensor.last_use);
    if (tensor.first_again < 0) continue;
    tensor.last_forward = index_of(tensor.last_forward);
    tensor.first_again = index_of(tensor.first_again);
  }
}

// An inserted kernel belongs to the chain of the kernel before it.
void KernelInsertions::move_chains(TrainingStep& made) const {
  for (IndependentChains& chains : made.chains) {
    chains.first = index_of(chains.first);
    chains.second = index_of(chains.second);
    chains.end = index_of(chains.end);
  }
}

}  // namespace tbdsim
