#include "graphs/captured/compiled_parts.h"

#include <algorithm>

#include "graphs/captured/operators/operators.h"

namespace tbdsim {
namespace {

// Numbers of a row that a block of threads holds in registers and caches between two passes; longer rows are
// read from memory again. An estimate: 64 KiB of fp32, what an SM has in registers for one block of 1024
// threads.
constexpr std::int64_t kLongestRow = 16'384;
// Operations on an element: as operators/norms.cpp and operators/softmax.cpp count them.
constexpr std::int64_t kMomentFlops = 3, kScaleFlops = 5, kSumFlops = 5, kGradientFlops = 5;
constexpr std::int64_t kSoftmaxSums = 3, kSoftmaxResult = 2, kSoftmaxBackwardSums = 2;

std::size_t at(int index) { return static_cast<std::size_t>(index); }

class OperatorParts {
 public:
  OperatorParts(const CapturedStep& step, std::size_t number, CompiledParts& to)
      : step_(step), op_(to.operators[number]), number_(number), to_(to) {}

  void run() {
    const OperatorEntry* entry = find_operator(op_.name);
    if (entry == nullptr) return call();
    for (const Rule& rule : kRules) {
      if (rule.lower != entry->lower) continue;
      flops_ = entry->flops;
      return (this->*rule.parts)();
    }
    call();
  }

 private:
  struct Rule {
    void (*lower)(OperatorSite&);
    void (OperatorParts::*parts)();
  };
  // Operators that are not among these are calls.
  static const Rule kRules[20];

  [[nodiscard]] const ArgumentValue* argument(std::size_t i) const {
    return i < op_.arguments.size() ? &op_.arguments[i].value : nullptr;
  }
  [[nodiscard]] int tensor_of(std::size_t i) const {
    const ArgumentValue* value = argument(i);
    const auto* tensor = value == nullptr ? nullptr : std::get_if<TensorRef>(value);
    return tensor == nullptr ? -1 : tensor->index;
  }
  [[nodiscard]] bool flag_of(std::size_t i) const {
    const ArgumentValue* value = argument(i);
    const auto* flag = value == nullptr ? nullptr : std::get_if<bool>(value);
    return flag != nullptr && *flag;
  }
  [[nodiscard]] bool flag_of_list(std::size_t i, std::size_t index) const {
    const ArgumentValue* value = argument(i);
    const auto* list = value == nullptr ? nullptr : std::get_if<std::vector<Argument>>(value);
    const auto* flag =
        list == nullptr || index >= list->size() ? nullptr : std::get_if<bool>(&(*list)[index].value);
    return flag != nullptr && *flag;
  }
  [[nodiscard]] int output(std::size_t i) const { return i < op_.outputs.size() ? op_.outputs[i] : -1; }
  [[nodiscard]] Size elements(int tensor) const {
    return tensor < 0 ? Size{} : step_.tensors[at(tensor)].elements;
  }
  [[nodiscard]] bool is_on_host(int tensor) const {
    return tensor >= 0 && step_.storages[at(step_.tensors[at(tensor)].storage)].role == StorageRole::host;
  }
  [[nodiscard]] std::vector<int> all_read() const {
    std::vector<int> tensors;
    each_tensor(op_.arguments, [&](int tensor) { tensors.push_back(tensor); });
    return tensors;
  }
  [[nodiscard]] static std::vector<int> present(std::vector<int> tensors) {
    std::erase_if(tensors, [](int tensor) { return tensor < 0; });
    return tensors;
  }
  [[nodiscard]] Size widest(const std::vector<int>& tensors) const {
    Size most;
    for (const int tensor : tensors) {
      if (elements(tensor).at(2) > most.at(2)) most = elements(tensor);
    }
    return most;
  }

  CompiledPart& add(PartKind kind, const Size& elements, std::int64_t flops, std::vector<int> reads,
                    std::vector<int> writes) {
    to_.parts.push_back({.kind = kind,
                         .op = number_,
                         .elements = elements,
                         .flops = elements * flops,
                         .reads = present(std::move(reads)),
                         .writes = present(std::move(writes))});
    return to_.parts.back();
  }

  // A reduction of rows of `length` numbers, as kind says where they stay on chip.
  void reduce(bool rows, std::int64_t length, const Size& of, std::int64_t flops, std::vector<int> reads,
              std::vector<int> writes) {
    const bool on_chip = rows && length <= kLongestRow;
    const std::int64_t count = std::max<std::int64_t>(1, length);
    add(on_chip ? PartKind::rows : PartKind::columns, of, flops, std::move(reads), std::move(writes))
        .results = {of.fixed / count, of.per_sample / count};
  }

  void then_pointwise(const Size& of, std::int64_t flops, std::vector<int> reads, std::vector<int> writes) {
    add(PartKind::pointwise, of, flops, std::move(reads), std::move(writes)).reads_above = true;
  }

  void call() { add(PartKind::call, {}, 0, all_read(), op_.outputs); }
  void view() { add(PartKind::view, {}, 0, {}, op_.outputs); }

  // A loss that is a sum or mean reads more than it writes.
  void pointwise() {
    const std::vector<int> reads = all_read();
    const Size read = widest(reads), written = widest(present(op_.outputs));
    if (written.at(2) >= read.at(2)) {
      add(PartKind::pointwise, written, flops_, reads, op_.outputs);
    } else {
      add(PartKind::columns, read, flops_, reads, op_.outputs).results = written;
    }
  }

  // Reads as much as it writes, whatever its argument's size: parts of it, or a part of its own.
  void moved() { add(PartKind::pointwise, widest(present(op_.outputs)), flops_, all_read(), op_.outputs); }
  void filled() { add(PartKind::pointwise, widest(present(op_.outputs)), flops_, {}, op_.outputs); }
  void copied() {
    const int from = tensor_of(name_in_table(op_.name) == "copy" ? 1 : 0);
    if (is_on_host(from) || is_on_host(output(0))) return call();  // over the bus
    add(PartKind::pointwise, elements(output(0)), 1, {from}, op_.outputs);
  }

  // (self, dim, ...): rows where the last dimension is reduced. Scans and sorts are calls.
  void reduction() {
    constexpr std::int64_t kSortFlops = 20;
    const std::string_view name = name_in_table(op_.name);
    if (flops_ >= kSortFlops || name.starts_with("cum") || name.starts_with("logcum")) return call();
    const int from = tensor_of(0);
    const Size of = elements(from), results = elements(output(0));
    if (from < 0 || results.at(2) <= 0) return call();
    const auto length = static_cast<std::int64_t>(of.at(2) / results.at(2));
    reduce(reduces_last(step_.tensors[at(from)]), length, of, flops_, all_read(), op_.outputs);
    to_.parts.back().results = results;
  }

  [[nodiscard]] bool reduces_last(const CapturedTensor& from) const {
    const ArgumentValue* value = argument(1);
    const auto* list = value == nullptr ? nullptr : std::get_if<std::vector<Argument>>(value);
    if (list == nullptr) return false;
    const auto rank = static_cast<std::int64_t>(from.shape.size());
    return std::ranges::any_of(*list, [&](const Argument& item) {
      const auto* dimension = std::get_if<Size>(&item.value);
      return dimension != nullptr && (dimension->fixed == -1 || dimension->fixed == rank - 1);
    });
  }

  // Numbers in a row of a reduction over one dimension of `tensor`; kLongestRow + 1 where they grow with the
  // batch.
  [[nodiscard]] std::int64_t length_of(int tensor, std::size_t dimension_argument) const {
    const ArgumentValue* value = argument(dimension_argument);
    const auto* dimension = value == nullptr ? nullptr : std::get_if<Size>(value);
    const std::vector<Size>& shape = step_.tensors[at(tensor)].shape;
    const auto rank = static_cast<std::int64_t>(shape.size());
    const std::int64_t i = dimension == nullptr ? -1 : dimension->fixed + (dimension->fixed < 0 ? rank : 0);
    if (i != rank - 1 || shape.back().per_sample != 0) return kLongestRow + 1;
    return shape.back().fixed;
  }

  // (self, dim, ...) and (grad, output, dim, ...)
  void softmax() {
    const int x = tensor_of(0);
    if (x < 0) return call();
    reduce(true, length_of(x, 1), elements(x), kSoftmaxSums, {x}, {});
    then_pointwise(elements(x), kSoftmaxResult, {x}, {output(0)});
  }
  void softmax_backward() {
    const int dy = tensor_of(0), y = tensor_of(1);
    if (dy < 0 || y < 0) return call();
    reduce(true, length_of(y, 2), elements(y), kSoftmaxBackwardSums, {dy, y}, {});
    then_pointwise(elements(y), kSoftmaxBackwardSums, {dy, y}, {output(0)});
  }
  // (grad, self, target, ...): each element of a row is the gradient where it is the row's class, else 0.
  void class_loss_backward() {
    add(PartKind::pointwise, elements(output(0)), 1, {tensor_of(0), tensor_of(2)}, {output(0)});
  }

  [[nodiscard]] std::int64_t count_of(const std::vector<Argument>& sizes) const {
    std::int64_t all = 1;
    for (const Argument& size : sizes) {
      const auto* count = std::get_if<Size>(&size.value);
      if (count != nullptr) all = checked_multiply(all, std::max<std::int64_t>(1, count->fixed));
    }
    return all;
  }
  [[nodiscard]] std::int64_t columns_of(std::size_t i) const {
    const ArgumentValue* value = argument(i);
    const auto* list = value == nullptr ? nullptr : std::get_if<std::vector<Argument>>(value);
    return list == nullptr ? 1 : count_of(*list);
  }

  // (input, normalized_shape, weight, bias, eps)
  void layer_norm() {
    const int x = tensor_of(0);
    reduce(true, columns_of(1), elements(x), kMomentFlops, {x}, {output(1), output(2)});
    then_pointwise(elements(x), kScaleFlops, {x, tensor_of(2), tensor_of(3)}, {output(0)});
  }
  // (grad, input, normalized_shape, mean, rstd, weight, bias, output_mask); of an RMS norm without mean and
  // bias
  void layer_norm_backward() {
    const int dy = tensor_of(0), x = tensor_of(1);
    const std::size_t mask = op_.arguments.size() - 1;
    const bool rms = mask == 5;
    const std::vector<int> reads = {dy, x, tensor_of(3), rms ? -1 : tensor_of(4)};
    if (flag_of_list(mask, 0)) {
      std::vector<int> with_weight = reads;
      with_weight.push_back(tensor_of(rms ? 4 : 5));
      reduce(true, columns_of(2), elements(x), kSumFlops, with_weight, {});
      then_pointwise(elements(x), kGradientFlops, with_weight, {output(0)});
    }
    if (!flag_of_list(mask, 1) && (rms || !flag_of_list(mask, 2))) return;
    add(PartKind::columns, elements(x), kSumFlops, reads, {output(1), output(2)}).results =
        fixed_size(columns_of(2));
  }

  // Statistics of the channels, or (input, weight, bias, N, C, HxW, group, eps) of groups.
  void norm_of_images(int weight, int bias) {
    const int x = tensor_of(0);
    add(PartKind::columns, elements(x), kMomentFlops, {x}, {output(1), output(2)}).results =
        elements(output(1));
    then_pointwise(elements(x), kScaleFlops, {x, weight, bias}, {output(0)});
  }
  void batch_norm() {
    if (flag_of(5)) return norm_of_images(tensor_of(1), tensor_of(2));
    add(PartKind::pointwise, elements(output(0)), 2, all_read(), {output(0)});
  }
  void group_norm() { norm_of_images(tensor_of(1), tensor_of(2)); }

  // Sums for the gradients of weights, which the gradient of the input reads.
  void norm_of_images_backward(std::size_t mask, const std::vector<int>& reads) {
    const int x = tensor_of(1);
    add(PartKind::columns, elements(x), kSumFlops, reads, {output(1), output(2)}).results =
        elements(output(1) < 0 ? output(2) : output(1));
    if (flag_of_list(mask, 0)) then_pointwise(elements(x), kGradientFlops, reads, {output(0)});
  }
  void batch_norm_backward() {
    norm_of_images_backward(9, {tensor_of(0), tensor_of(1), tensor_of(2), tensor_of(5), tensor_of(6)});
  }
  void group_norm_backward() {
    norm_of_images_backward(9, {tensor_of(0), tensor_of(1), tensor_of(2), tensor_of(3), tensor_of(4)});
  }

  // torch/_inductor/kernel/conv.py: on GPUs the bias is added to the result of a convolution without one.
  void convolution() {
    const int bias = tensor_of(2);
    if (bias >= 0) op_.arguments[2].value = std::monostate{};
    call();
    if (bias >= 0) add(PartKind::pointwise, elements(output(0)), 1, {output(0), bias}, {output(0)});
  }
  void convolution_backward() {
    const bool of_bias = flag_of_list(10, 2);
    const int gradient = output(2);
    if (of_bias) std::get<std::vector<Argument>>(op_.arguments[10].value)[2].value = false;
    if (of_bias && op_.outputs.size() > 2) op_.outputs[2] = -1;
    if (of_bias)
      add(PartKind::columns, elements(tensor_of(0)), 1, {tensor_of(0)}, {gradient}).results =
          elements(gradient);
    call();
  }

  // Lists of tensors are one loop over all of their numbers.
  void foreach () {
    if (op_.phase != StepPhase::update || flops_ == 0) return call();
    const ArgumentValue* value = argument(0);
    const auto* list = value == nullptr ? nullptr : std::get_if<std::vector<Argument>>(value);
    if (list == nullptr) return call();
    Size all;
    std::vector<int> first;
    for (const Argument& item : *list) {
      const auto* tensor = std::get_if<TensorRef>(&item.value);
      if (tensor == nullptr) continue;
      first.push_back(tensor->index);
      all += elements(tensor->index);
    }
    const bool in_place = is_in_place(op_.name) || op_.outputs.empty();
    add(PartKind::pointwise, all, flops_, all_read(), in_place ? first : op_.outputs);
  }

  const CapturedStep& step_;
  CapturedOperator& op_;
  std::size_t number_;
  CompiledParts& to_;
  std::int64_t flops_ = 0;
};

const OperatorParts::Rule OperatorParts::kRules[20] = {
    {lower_view, &OperatorParts::view},
    {lower_elementwise, &OperatorParts::pointwise},
    {lower_copy, &OperatorParts::copied},
    {lower_fill, &OperatorParts::filled},
    {lower_join, &OperatorParts::moved},
    {lower_pad, &OperatorParts::moved},
    {lower_slice_backward, &OperatorParts::moved},
    {lower_reduction, &OperatorParts::reduction},
    {lower_softmax, &OperatorParts::softmax},
    {lower_softmax_backward, &OperatorParts::softmax_backward},
    {lower_class_loss_backward, &OperatorParts::class_loss_backward},
    {lower_layer_norm, &OperatorParts::layer_norm},
    {lower_layer_norm_backward, &OperatorParts::layer_norm_backward},
    {lower_batch_norm, &OperatorParts::batch_norm},
    {lower_batch_norm_backward, &OperatorParts::batch_norm_backward},
    {lower_group_norm, &OperatorParts::group_norm},
    {lower_group_norm_backward, &OperatorParts::group_norm_backward},
    {lower_convolution, &OperatorParts::convolution},
    {lower_convolution_backward, &OperatorParts::convolution_backward},
    {lower_foreach, &OperatorParts::foreach},
};

}  // namespace

CompiledParts compiled_parts(const CapturedStep& step) {
  CompiledParts all{.operators = step.operators, .parts = {}};
  all.parts.reserve(step.operators.size() * 2);
  for (std::size_t i = 0; i < step.operators.size(); ++i) OperatorParts(step, i, all).run();
  return all;
}

}  // namespace tbdsim
