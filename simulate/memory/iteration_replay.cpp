#include "simulate/memory/iteration_replay.h"

#include <algorithm>
#include <cstddef>
#include <numeric>

namespace tbdsim {
namespace {

constexpr std::int64_t kMostPieces = 10'000;  // of a tensor; more are simulated as so many larger ones

constexpr auto kNoKernel = static_cast<std::size_t>(-1);

bool lasts(const TrainingStep& step, const Tensor& tensor) {
  return tensor.first_use == 0 && tensor.last_use == static_cast<int>(step.kernels.size()) - 1;
}

// The kernel of each tensor that is in a member, Tensor::first_use or last_use; none for empty tensors and
// those that live across iterations.
std::vector<std::size_t> kernel_of_tensors(const TrainingStep& step, int Tensor::*use) {
  std::vector<std::size_t> kernels;
  kernels.reserve(step.tensors.size());
  for (const Tensor& tensor : step.tensors)
    kernels.push_back(tensor.bytes == Size{} || lasts(step, tensor) ? kNoKernel
                                                                    : static_cast<std::size_t>(tensor.*use));
  return kernels;
}

}  // namespace

TensorsByKernel::TensorsByKernel(std::span<const std::size_t> kernel_of, std::size_t kernels)
    : first_(kernels + 1) {
  for (const std::size_t kernel : kernel_of)
    if (kernel < kernels) ++first_[kernel + 1];
  std::partial_sum(first_.begin(), first_.end(), first_.begin());
  tensors_.resize(first_.back());
  std::vector<std::size_t> next(first_.begin(), first_.end() - 1);
  for (std::size_t i = 0; i < kernel_of.size(); ++i)
    if (kernel_of[i] < kernels) tensors_[next[kernel_of[i]]++] = i;
}

Bytes scratch_of(const TrainingStep& step, std::span<const KernelCost> costs, double batch, std::size_t k) {
  const Kernel& kernel = step.kernels[k];
  const Bytes tensors(kernel.scratch_bytes.at(batch));
  return kernel.kind == KernelKind::convolution ? tensors + costs[k].workspace : tensors;
}

IterationReplay::IterationReplay(const TrainingStep& step, std::span<const KernelCost> costs, double batch,
                                 CachingAllocator& allocator)
    : step_(step),
      batch_(batch),
      allocator_(allocator),
      born_(kernel_of_tensors(step, &Tensor::first_use), step.kernels.size()),
      dying_(kernel_of_tensors(step, &Tensor::last_use), step.kernels.size()) {
  scratch_.reserve(step.kernels.size());
  for (std::size_t k = 0; k < step.kernels.size(); ++k)
    scratch_.push_back(static_cast<std::uint64_t>(scratch_of(step, costs, batch, k).si()));
  first_piece_.reserve(step.tensors.size() + 1);
  first_piece_.push_back(0);
  for (std::size_t i = 0; i < step.tensors.size(); ++i) {
    const Tensor& tensor = step.tensors[i];
    if (tensor.bytes != Size{} && lasts(step, tensor)) lasting_.push_back(i);
    first_piece_.push_back(first_piece_.back() +
                           static_cast<std::size_t>(std::min(tensor.pieces, kMostPieces)));
  }
  addresses_.resize(first_piece_.back());
}

void IterationReplay::allocate_lasting(Bytes kept_workspaces) {
  if (kept_workspaces > Bytes())
    allocator_.allocate(static_cast<std::uint64_t>(kept_workspaces.si()), kLibrary);
  for (const std::size_t tensor : lasting_) allocate(tensor);
}

std::span<std::uint64_t> IterationReplay::pieces_of(std::size_t tensor) {
  return std::span(addresses_).subspan(first_piece_[tensor], first_piece_[tensor + 1] - first_piece_[tensor]);
}

void IterationReplay::allocate(std::size_t tensor) {
  const std::span<std::uint64_t> pieces = pieces_of(tensor);
  const double each = step_.tensors[tensor].bytes.at(batch_) / static_cast<double>(pieces.size());
  for (std::uint64_t& address : pieces)
    address = allocator_.allocate(static_cast<std::uint64_t>(each), static_cast<int>(tensor));
}

void IterationReplay::run(const std::function<void(std::size_t)>& taken,
                          const std::function<void(std::size_t)>& done) {
  for (std::size_t k = 0; k < scratch_.size(); ++k) {
    for (const std::size_t tensor : born_.of(k)) allocate(tensor);
    const std::uint64_t address =
        scratch_[k] > 0 ? allocator_.allocate(scratch_[k], -1 - static_cast<int>(k)) : 0;
    if (taken) taken(k);
    if (scratch_[k] > 0) allocator_.free(address);
    for (const std::size_t tensor : dying_.of(k))
      for (const std::uint64_t piece : pieces_of(tensor)) allocator_.free(piece);
    if (done) done(k);
  }
}

}  // namespace tbdsim
