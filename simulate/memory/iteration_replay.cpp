#include "simulate/memory/iteration_replay.h"

#include <algorithm>
#include <cstddef>

namespace tbdsim {
namespace {

constexpr std::int64_t kMostPieces = 10'000;  // of a tensor; more are simulated as so many larger ones

}  // namespace

Bytes scratch_of(const TrainingStep& step, std::span<const KernelCost> costs, double batch, std::size_t k) {
  const Kernel& kernel = step.kernels[k];
  const Bytes tensors(kernel.scratch_bytes.at(batch));
  return kernel.kind == KernelKind::convolution ? tensors + costs[k].workspace : tensors;
}

IterationReplay::IterationReplay(const TrainingStep& step, std::span<const KernelCost> costs, double batch,
                                 CachingAllocator& allocator)
    : step_(step), batch_(batch), allocator_(allocator), addresses_(step.tensors.size()) {
  const std::size_t kernels = step.kernels.size();
  born_.resize(kernels);
  dies_.resize(kernels);
  for (std::size_t k = 0; k < kernels; ++k)
    scratch_.push_back(static_cast<std::uint64_t>(scratch_of(step, costs, batch, k).si()));
  for (std::size_t i = 0; i < step.tensors.size(); ++i) {
    const Tensor& tensor = step.tensors[i];
    if (tensor.bytes == Size{}) continue;
    if (tensor.first_use == 0 && tensor.last_use == static_cast<int>(kernels) - 1) {
      lasting_.push_back(i);
    } else {
      born_[static_cast<std::size_t>(tensor.first_use)].push_back(i);
      dies_[static_cast<std::size_t>(tensor.last_use)].push_back(i);
    }
  }
}

void IterationReplay::allocate_lasting() {
  for (const std::size_t tensor : lasting_) allocate(tensor);
}

void IterationReplay::allocate(std::size_t tensor) {
  const Tensor& of = step_.tensors[tensor];
  const std::int64_t pieces = std::min(of.pieces, kMostPieces);
  const auto each = static_cast<std::uint64_t>(of.bytes.at(batch_) / static_cast<double>(pieces));
  for (std::int64_t i = 0; i < pieces; ++i)
    addresses_[tensor].push_back(allocator_.allocate(each, static_cast<int>(tensor)));
}

void IterationReplay::run(const std::function<void(std::size_t)>& taken,
                          const std::function<void(std::size_t)>& done) {
  for (std::size_t k = 0; k < born_.size(); ++k) {
    for (const std::size_t tensor : born_[k]) allocate(tensor);
    const std::uint64_t address =
        scratch_[k] > 0 ? allocator_.allocate(scratch_[k], -1 - static_cast<int>(k)) : 0;
    if (taken) taken(k);
    if (scratch_[k] > 0) allocator_.free(address);
    for (const std::size_t tensor : dies_[k]) {
      for (const std::uint64_t piece : addresses_[tensor]) allocator_.free(piece);
      addresses_[tensor].clear();
    }
    if (done) done(k);
  }
}

}  // namespace tbdsim
