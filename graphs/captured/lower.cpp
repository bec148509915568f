#include "graphs/captured/lower.h"

#include <algorithm>
#include <map>
#include <set>
#include <stdexcept>

#include <fmt/format.h>

#include "graphs/captured/compile.h"
#include "graphs/captured/lifetimes.h"
#include "graphs/captured/operator_table.h"
#include "graphs/captured/operators/operators.h"
#include "graphs/captured/parameters.h"
#include "graphs/parameter_updates.h"
#include "graphs/same_kernels.h"
#include "hwspecs/base/error.h"

namespace tbdsim {
namespace {

constexpr std::size_t kMostKernels = 2'000'000;

std::size_t at(int index) { return static_cast<std::size_t>(index); }

// The outermost dimension that grows with the batch, or the first, as rows; the others as they are.
Shape shape_of(const CapturedTensor& tensor) {
  Shape shape{fixed_size(1), {}};
  if (tensor.shape.empty()) return shape;
  std::size_t rows = 0;
  for (std::size_t i = tensor.shape.size(); i-- > 0;) {
    if (tensor.shape[i].per_sample != 0) rows = i;
  }
  shape.rows = tensor.shape[rows];
  for (std::size_t i = 0; i < tensor.shape.size(); ++i) {
    if (i != rows) shape.dims.push_back(tensor.shape[i].fixed);
  }
  return shape;
}

Phase phase_of(const CapturedOperator& op, bool makes_gradient) {
  switch (op.phase) {
    case StepPhase::forward:
      return Phase::forward;
    case StepPhase::backward:
      return makes_gradient ? Phase::backward_weights : Phase::backward_data;
    case StepPhase::update:
      return Phase::update;
    case StepPhase::zero:
      break;
  }
  return Phase::backward_weights;
}

class StepLowering {
 public:
  // `statistics`: moving_statistics() of the step as it was recorded.
  StepLowering(const CapturedStep& captured, std::vector<bool> statistics, const LoweringContext& how)
      : captured_(captured),
        statistics_(std::move(statistics)),
        how_(how),
        module_of_storage_(module_of_storages(captured)),
        makes_gradient_(makes_parameter_gradient(captured)),
        trained_(trained_parameters(captured)) {
    step_.sample = captured.sample;
    step_.warnings = captured.warnings;
  }

  TrainingStep run() {
    name_unknown_operators();
    summarise_modules();
    if (how_.lowering.zero_gradients) fill_gradients();
    for (std::size_t i = 0; i < captured_.operators.size(); ++i) {
      lower(i);
      if (step_.kernels.size() > kMostKernels)
        throw ModelError(captured_.file + ": more than 2000000 kernels; expected a smaller step");
    }
    if (step_.kernels.empty())
      throw ModelError(captured_.file + ": no operator runs a kernel; expected a step that computes");
    step_.tensors = tensors_of(captured_, module_of_storage_, spans_, added_gradients(), step_.kernels);
    for (const auto& [storage, kept] : kept_)
      step_.tensors.push_back({TensorRole::feature_map, 0, kept.bytes, kept.first, kept.last});
    append_gradients();
    mark_duplicates(step_.kernels);
    step_.updates = parameter_updates(step_);
    return std::move(step_);
  }

 private:
  void name_unknown_operators() {
    std::map<std::string, std::int64_t> counts;
    for (const CapturedOperator& op : captured_.operators) {
      if (find_operator(op.name) == nullptr) ++counts[op.name];
    }
    if (counts.empty()) return;
    auto names = std::make_shared<std::set<std::string, std::less<>>>();
    std::string text;
    for (const auto& [name, count] : counts) {
      names->insert(std::string(name_in_table(name)));
      text += fmt::format("{}{} ({})", text.empty() ? "" : ", ", name, count);
    }
    step_.names = std::move(names);
    step_.warnings.push_back("operators without a lowering, charged by their bytes: " + text);
  }

  void summarise_modules() {
    for (const CapturedModule& module : captured_.modules) {
      step_.layers.push_back({.name = module.path.empty() ? captured_.name : module.path,
                              .type = module.type,
                              .output = {},
                              .forward_macs = {},
                              .training_macs = {}});
    }
    const std::vector<Size> elements = elements_of_storages(captured_);
    std::set<int> trained;
    for (const TrainedParameter& parameter : trained_) trained.insert(parameter.parameter);
    for (std::size_t i = 0; i < captured_.storages.size(); ++i) {
      const CapturedStorage& storage = captured_.storages[i];
      if (module_of_storage_[i] < 0) continue;
      LayerSummary& layer = step_.layers[at(module_of_storage_[i])];
      if (storage.role == StorageRole::parameter) {
        std::int64_t& sum =
            trained.contains(static_cast<int>(i)) ? layer.trained_parameters : layer.frozen_parameters;
        sum = checked_add(sum, elements[i].fixed);
      } else if (storage.role == StorageRole::buffer && statistics_[i]) {
        layer.statistics = checked_add(layer.statistics, elements[i].fixed);
      }
    }
  }

  void lower(std::size_t i) {
    const CapturedOperator& op = captured_.operators[i];
    const std::size_t first = step_.kernels.size();
    static constexpr OperatorEntry kNone{.name = "", .lower = nullptr};
    const OperatorEntry* entry = find_operator(op.name);
    OperatorSite site(captured_, i, entry == nullptr ? kNone : *entry, how_, phase_of(op, makes_gradient_[i]),
                      module_of_storage_, sink_);
    if (entry != nullptr) {
      entry->lower(site);
    } else {
      lower_unknown(site, *step_.names->find(name_in_table(op.name)));
    }
    add_gradients_made_by(i);
    spans_.push_back({static_cast<int>(first), static_cast<int>(step_.kernels.size()) - 1});
    count_macs(op, first);
  }

  void count_macs(const CapturedOperator& op, std::size_t first) {
    LayerSummary& layer = step_.layers[at(op.module)];
    for (std::size_t k = first; k < step_.kernels.size(); ++k) {
      layer.training_macs += step_.kernels[k].macs;
      if (op.phase == StepPhase::forward) layer.forward_macs += step_.kernels[k].macs;
    }
    const bool shown = op.phase == StepPhase::forward && !op.outputs.empty() && op.outputs[0] >= 0;
    if (shown) layer.output = shape_of(captured_.tensors[at(op.outputs[0])]);
  }

  // True for a gradient that the step makes anew, which a framework that zeroes gradients adds to the zeros
  // that are there.
  [[nodiscard]] bool is_added(const TrainedParameter& trained) const {
    return how_.lowering.zero_gradients && captured_.storages[at(trained.gradient)].born >= 0 &&
           trained.last_operator >= 0;
  }

  [[nodiscard]] std::vector<bool> added_gradients() const {
    std::vector<bool> added(captured_.storages.size(), false);
    for (const TrainedParameter& trained : trained_) added[at(trained.gradient)] = is_added(trained);
    return added;
  }

  void append_over_gradient(const TrainedParameter& trained, std::string_view op, std::int64_t flops,
                            std::int64_t reads) {
    const Size bytes = captured_.storages[at(trained.gradient)].bytes;
    Kernel kernel = bytes_kernel(KernelKind::elementwise, Phase::backward_weights, op, trained.elements,
                                 flops, bytes * reads, bytes, kFp32Bytes);
    kernel.layer = std::max(0, module_of_storage_[at(trained.gradient)]);
    step_.kernels.push_back(std::move(kernel));
  }

  void fill_gradients() {
    for (const TrainedParameter& trained : trained_) {
      if (is_added(trained)) append_over_gradient(trained, "fill", 0, 0);
    }
  }

  // torch/csrc/autograd/functions/accumulate_grad.h: variable_grad += new_grad where there is a gradient.
  void add_gradients_made_by(std::size_t i) {
    if (!makes_gradient_[i]) return;
    const auto made = by_operator_.find(static_cast<int>(i));
    if (made == by_operator_.end()) return;
    for (const std::size_t number : made->second) {
      if (is_added(trained_[number])) append_over_gradient(trained_[number], "add", 1, 2);
    }
  }

  [[nodiscard]] std::map<int, std::vector<std::size_t>> gradients_by_operator() const {
    std::map<int, std::vector<std::size_t>> made;
    for (std::size_t i = 0; i < trained_.size(); ++i) made[trained_[i].last_operator].push_back(i);
    return made;
  }

  // Appends the gradients that ranks exchange, in the order in which they are ready.
  void append_gradients() {
    for (const TrainedParameter& trained : trained_) {
      if (trained.last_operator < 0) continue;
      step_.gradients.push_back({.layer = std::max(0, module_of_storage_[at(trained.gradient)]),
                                 .elements = trained.elements,
                                 .ready = std::max(0, spans_[at(trained.last_operator)].last)});
    }
    std::ranges::stable_sort(step_.gradients, {}, &ParameterGradient::ready);
  }

  const CapturedStep& captured_;
  std::vector<bool> statistics_;
  const LoweringContext& how_;
  std::vector<int> module_of_storage_;
  std::vector<bool> makes_gradient_;
  std::vector<TrainedParameter> trained_;
  std::map<int, std::vector<std::size_t>> by_operator_ = gradients_by_operator();
  TrainingStep step_{};
  std::vector<OperatorSpan> spans_{};  // of each operator
  std::map<int, LoweredKernels::Kept> kept_{};
  LoweredKernels sink_{step_.kernels, kept_};
};

}  // namespace

TrainingStep lower_captured_step(const CapturedStep& captured, const Lowering& lowering,
                                 const Precision& precision) {
  const LoweringContext how{lowering, precision};
  try {
    if (lowering.compiler == Compiler::inductor)
      return StepLowering(compiled(captured), moving_statistics(captured), how).run();
    return StepLowering(captured, moving_statistics(captured), how).run();
  } catch (const std::overflow_error& overflow) {
    throw ModelError(captured.file + ": " + overflow.what() + "; expected smaller tensors");
  }
}

}  // namespace tbdsim
