#include "graphs/captured/operator_site.h"

#include <algorithm>

#include "hwspecs/base/error.h"

namespace tbdsim {
namespace {

template <class T>
const T* find_as(const ArgumentValue* value) {
  return value == nullptr ? nullptr : std::get_if<T>(value);
}

std::vector<const CapturedTensor*> each_once(std::vector<int> indices, const CapturedStep& step) {
  std::sort(indices.begin(), indices.end());
  indices.erase(std::unique(indices.begin(), indices.end()), indices.end());
  std::vector<const CapturedTensor*> tensors;
  for (const int index : indices) {
    if (index >= 0) tensors.push_back(&step.tensors[static_cast<std::size_t>(index)]);
  }
  return tensors;
}

}  // namespace

const ArgumentValue* OperatorSite::find(std::size_t argument) const {
  return argument < op.arguments.size() ? &op.arguments[argument].value : nullptr;
}

void OperatorSite::fail(std::size_t argument, const std::string& expected) const {
  throw ModelError(step.file + ": operators[" + std::to_string(number_) + "].arguments[" +
                   std::to_string(argument) + "] of " + op.name + " in module '" +
                   step.modules[static_cast<std::size_t>(op.module)].path + "': expected " + expected);
}

void OperatorSite::fail(const std::string& what) const {
  throw ModelError(step.file + ": operators[" + std::to_string(number_) + "], " + op.name + " in module '" +
                   step.modules[static_cast<std::size_t>(op.module)].path + "': " + what);
}

const CapturedTensor* OperatorSite::find_tensor(std::size_t argument) const {
  const auto* tensor = find_as<TensorRef>(find(argument));
  return tensor == nullptr ? nullptr : &step.tensors[static_cast<std::size_t>(tensor->index)];
}

const CapturedTensor& OperatorSite::tensor(std::size_t argument) const {
  const CapturedTensor* found = find_tensor(argument);
  if (found == nullptr) fail(argument, "a tensor");
  return *found;
}

std::vector<const CapturedTensor*> OperatorSite::tensors(std::size_t argument) const {
  const auto* list = find_as<std::vector<Argument>>(find(argument));
  if (list == nullptr) fail(argument, "a list of tensors");
  std::vector<const CapturedTensor*> all;
  for (const Argument& item : *list) {
    if (const auto* tensor = std::get_if<TensorRef>(&item.value))
      all.push_back(&step.tensors[static_cast<std::size_t>(tensor->index)]);
  }
  return all;
}

Size OperatorSite::size(std::size_t argument) const {
  const auto* size = find_as<Size>(find(argument));
  if (size == nullptr) fail(argument, "a whole number");
  return *size;
}

std::int64_t OperatorSite::whole(std::size_t argument) const {
  const Size found = size(argument);
  if (found.per_sample != 0) fail(argument, "a whole number");
  return found.fixed;
}

std::vector<std::int64_t> OperatorSite::wholes(std::size_t argument) const {
  const auto* list = find_as<std::vector<Argument>>(find(argument));
  if (list == nullptr) return {whole(argument)};
  std::vector<std::int64_t> all;
  for (const Argument& item : *list) {
    const auto* size = std::get_if<Size>(&item.value);
    if (size == nullptr || size->per_sample != 0) fail(argument, "whole numbers");
    all.push_back(size->fixed);
  }
  return all;
}

std::vector<Size> OperatorSite::sizes(std::size_t argument) const {
  const auto* list = find_as<std::vector<Argument>>(find(argument));
  if (list == nullptr) fail(argument, "a list");
  std::vector<Size> all;
  for (const Argument& item : *list) {
    const auto* size = std::get_if<Size>(&item.value);
    if (size == nullptr) fail(argument, "a list of whole numbers");
    all.push_back(*size);
  }
  return all;
}

bool OperatorSite::flag(std::size_t argument) const {
  const auto* flag = find_as<bool>(find(argument));
  if (flag == nullptr) fail(argument, "true or false");
  return *flag;
}

double OperatorSite::number(std::size_t argument, double unless_given) const {
  const ArgumentValue* value = find(argument);
  if (const auto* number = find_as<double>(value)) return *number;
  if (const auto* size = find_as<Size>(value)) return static_cast<double>(size->fixed);
  if (value != nullptr && !std::holds_alternative<std::monostate>(*value)) fail(argument, "a number");
  return unless_given;
}

bool OperatorSite::flag_of_list(std::size_t argument, std::size_t index) const {
  const auto* list = find_as<std::vector<Argument>>(find(argument));
  const auto* flag =
      list == nullptr || index >= list->size() ? nullptr : std::get_if<bool>(&(*list)[index].value);
  if (flag == nullptr) fail(argument, "a list of true and false");
  return *flag;
}

const CapturedTensor* OperatorSite::find_output(std::size_t index) const {
  if (index >= op.outputs.size() || op.outputs[index] < 0) return nullptr;
  return &step.tensors[static_cast<std::size_t>(op.outputs[index])];
}

const CapturedTensor& OperatorSite::output(std::size_t index) const {
  const CapturedTensor* found = find_output(index);
  if (found == nullptr) fail("has no output " + std::to_string(index) + "; expected a tensor");
  return *found;
}

std::vector<const CapturedTensor*> OperatorSite::all_tensors() const {
  std::vector<int> indices;
  each_tensor(op.arguments, [&](int tensor) { indices.push_back(tensor); });
  return each_once(std::move(indices), step);
}

std::vector<const CapturedTensor*> OperatorSite::all_outputs() const { return each_once(op.outputs, step); }

std::int64_t OperatorSite::fixed(const Size& size) const {
  if (size.per_sample != 0) fail("a size grows with the batch where a fixed one is expected");
  return size.fixed;
}

Size OperatorSite::product(const Size& a, const Size& b) const {
  if (a.per_sample == 0) return b * a.fixed;
  if (b.per_sample == 0) return a * b.fixed;
  fail("its work grows with the square of the batch; expected work that grows with the batch");
}

void OperatorSite::emit(Kernel kernel) {
  kernel.layer = op.module;
  to_.kernels.push_back(std::move(kernel));
}

void OperatorSite::emit_for_parameter_of(const CapturedTensor& tensor, Kernel kernel) {
  if (phase != Phase::update) return emit(std::move(kernel));
  kernel.layer = layer_of_storage_[static_cast<std::size_t>(tensor.storage)];
  to_.kernels.push_back(std::move(kernel));
}

void OperatorSite::emit_for_all(Kernel kernel) {
  kernel.layer = -1;
  to_.kernels.push_back(std::move(kernel));
}

void OperatorSite::keep(int storage, Size bytes) {
  const int at = std::max(0, static_cast<int>(to_.kernels.size()) - 1);
  to_.kept[storage] = {bytes, at, at};
}

void OperatorSite::release(int storage) {
  const auto kept = to_.kept.find(storage);
  if (kept != to_.kept.end()) kept->second.last = std::max(0, static_cast<int>(to_.kernels.size()) - 1);
}

Size bytes_of(const std::vector<const CapturedTensor*>& tensors) {
  Size bytes;
  for (const CapturedTensor* tensor : tensors) bytes += bytes_of(*tensor);
  return bytes;
}

MathType math_of(Dtype dtype, MathType of_fp32) {
  switch (dtype) {
    case Dtype::f16:
      return MathType::fp16;
    case Dtype::bf16:
      return MathType::bf16;
    case Dtype::f8e4m3:
    case Dtype::f8e5m2:
      return MathType::fp8;
    default:
      return of_fp32 == MathType::tf32 ? MathType::tf32 : MathType::fp32;
  }
}

Kernel bytes_kernel(KernelKind kind, Phase phase, std::string_view op, const Size& elements,
                    std::int64_t flops_per_element, const Size& read, const Size& written,
                    std::int64_t element_bytes) {
  Kernel kernel;
  kernel.kind = kind;
  kernel.phase = phase;
  kernel.op = op;
  kernel.flops = elements * flops_per_element;
  kernel.read_bytes = read;
  kernel.written_bytes = written;
  kernel.shape = VectorShape{elements};
  kernel.element_bytes = element_bytes;
  return kernel;
}

}  // namespace tbdsim
