#include "graphs/captured/lifetimes.h"

#include <algorithm>

#include "graphs/captured/operator_table.h"

namespace tbdsim {
namespace {

std::size_t at(int index) { return static_cast<std::size_t>(index); }

// Where a storage is read: the last kernel of the forward pass, the first of the backward pass; -1: none.
struct Reads {
  int last_forward = -1;
  int first_again = -1;
};

std::vector<Reads> reads_of(const CapturedStep& step, const std::vector<OperatorSpan>& spans) {
  std::vector<Reads> reads(step.storages.size());
  for (std::size_t i = 0; i < step.operators.size(); ++i) {
    const CapturedOperator& op = step.operators[i];
    if (spans[i].last < spans[i].first) continue;
    const auto visit = [&](int tensor) {
      Reads& of = reads[at(step.tensors[at(tensor)].storage)];
      if (op.phase == StepPhase::forward) of.last_forward = spans[i].last;
      if (op.phase == StepPhase::backward && of.first_again < 0) of.first_again = spans[i].first;
    };
    each_tensor(op.arguments, visit);
    for (const int output : op.outputs) {
      if (output >= 0 && op.phase == StepPhase::forward) visit(output);
    }
  }
  return reads;
}

// Storages of activations that hold a parameter in another number format: autocast keeps one cast of each
// weight.
std::vector<bool> casts_of_parameters(const CapturedStep& step) {
  std::vector<bool> casts(step.storages.size(), false);
  for (const CapturedOperator& op : step.operators) {
    if (op.phase != StepPhase::forward || name_in_table(op.name) != "_to_copy") continue;
    if (op.arguments.empty() || op.outputs.empty() || op.outputs[0] < 0) continue;
    const auto* from = std::get_if<TensorRef>(&op.arguments[0].value);
    if (from == nullptr) continue;
    const CapturedStorage& source = step.storages[at(step.tensors[at(from->index)].storage)];
    const int to = step.tensors[at(op.outputs[0])].storage;
    if (source.role == StorageRole::parameter && step.storages[at(to)].role == StorageRole::activation)
      casts[at(to)] = true;
  }
  return casts;
}

TensorRole role_of(StorageRole role, bool casts_parameter) {
  switch (role) {
    case StorageRole::parameter:
    case StorageRole::buffer:
      return TensorRole::weights;
    case StorageRole::gradient:
      return TensorRole::weight_gradients;
    case StorageRole::state:
      return TensorRole::dynamic;
    case StorageRole::gradient_map:
      return TensorRole::gradient_map;
    case StorageRole::input:
    case StorageRole::activation:
    case StorageRole::temporary:
    case StorageRole::host:
      break;
  }
  return casts_parameter ? TensorRole::weights : TensorRole::feature_map;
}

// Adds the bytes to the scratch memory of kernels from first to last, for many storages at once.
class Scratch {
 public:
  explicit Scratch(std::size_t kernels) : changes_(kernels + 1) {}
  void add(int first, int last, const Size& bytes) {
    changes_[at(first)] += bytes;
    changes_[at(last) + 1] += bytes * -1;
  }
  void apply(std::vector<Kernel>& kernels) const {
    Size alive;
    for (std::size_t k = 0; k < kernels.size(); ++k) {
      alive += changes_[k];
      kernels[k].scratch_bytes += alive;
    }
  }

 private:
  std::vector<Size> changes_;
};

}  // namespace

std::vector<Tensor> tensors_of(const CapturedStep& step, const std::vector<int>& module_of_storage,
                               const std::vector<OperatorSpan>& spans, const std::vector<bool>& added,
                               std::vector<Kernel>& kernels) {
  const std::vector<Reads> reads = reads_of(step, spans);
  const std::vector<bool> casts = casts_of_parameters(step);
  const int end = static_cast<int>(kernels.size()) - 1;
  std::vector<Tensor> tensors;
  Scratch scratch(kernels.size());
  for (std::size_t i = 0; i < step.storages.size(); ++i) {
    const CapturedStorage& storage = step.storages[i];
    if (storage.role == StorageRole::host || storage.bytes == Size{}) continue;
    const bool made = storage.born >= 0;
    const int layer =
        made && module_of_storage[i] < 0 ? step.operators[at(storage.born)].module : module_of_storage[i];
    const int first = std::min(made ? spans[at(storage.born)].first : 0, end);
    int last = storage.freed < 0 ? end : spans[at(storage.freed)].last;
    TensorRole role = role_of(storage.role, casts[i]);
    if (added[i]) {  // the sum is kept throughout; what is added lives until the kernel that adds it
      tensors.push_back({role, layer, storage.bytes, 0, end});
      role = TensorRole::gradient_map;
      last = std::max(first, spans[at(storage.born)].last);
    }
    if (last < first) continue;
    if (storage.role == StorageRole::temporary) {
      scratch.add(first, last, storage.bytes);
      continue;
    }
    Tensor tensor{.role = role, .layer = layer, .bytes = storage.bytes, .first_use = first, .last_use = last};
    if (storage.role == StorageRole::activation && reads[i].first_again >= 0 && reads[i].last_forward >= 0) {
      tensor.last_forward = reads[i].last_forward;
      tensor.first_again = reads[i].first_again;
    }
    tensors.push_back(tensor);
  }
  scratch.apply(kernels);
  return tensors;
}

}  // namespace tbdsim
