#include "graphs/captured/parameters.h"

#include <algorithm>
#include <map>
#include <string_view>

#include "graphs/captured/operator_table.h"

namespace tbdsim {
namespace {

std::size_t at(int index) { return static_cast<std::size_t>(index); }

// Operators whose output is a gradient of a parameter if and only if their inputs are.
bool passes_on(std::string_view recorded) {
  constexpr std::string_view kNames[] = {"_to_copy", "add", "clone", "copy",
                                         "detach",   "mul", "div",   "tbdsim.fused_pointwise"};
  return std::ranges::find(kNames, name_in_table(recorded)) != std::end(kNames);
}

}  // namespace

std::vector<Size> elements_of_storages(const CapturedStep& step) {
  std::vector<std::int64_t> width(step.storages.size(), 0);
  for (const CapturedTensor& tensor : step.tensors) {
    std::int64_t& of_storage = width[at(tensor.storage)];
    if (of_storage == 0) of_storage = bytes_of(tensor.dtype);
  }
  std::vector<Size> elements(step.storages.size());
  for (std::size_t i = 0; i < elements.size(); ++i) {
    const Size& bytes = step.storages[i].bytes;
    if (width[i] > 0) elements[i] = {bytes.fixed / width[i], bytes.per_sample / width[i]};
  }
  return elements;
}

std::vector<int> module_of_storages(const CapturedStep& step) {
  std::map<std::string_view, int> modules;
  for (std::size_t i = 0; i < step.modules.size(); ++i)
    modules.try_emplace(step.modules[i].path, static_cast<int>(i));
  std::vector<int> found(step.storages.size(), -1);
  for (std::size_t i = 0; i < step.storages.size(); ++i) {
    std::string_view path = step.storages[i].name;
    if (path.empty()) continue;
    found[i] = 0;
    while (!path.empty()) {
      const std::size_t dot = path.rfind('.');
      path = dot == std::string_view::npos ? std::string_view() : path.substr(0, dot);
      const auto module = modules.find(path);
      if (module == modules.end()) continue;
      found[i] = module->second;
      break;
    }
  }
  return found;
}

// native_batch_norm(input, weight, bias, running_mean, running_var, ...)
std::vector<bool> moving_statistics(const CapturedStep& step) {
  std::vector<bool> found(step.storages.size(), false);
  for (const CapturedOperator& op : step.operators) {
    if (op.arguments.size() < 5 || name_in_table(op.name) != "native_batch_norm") continue;
    for (const std::size_t argument : {3U, 4U}) {
      if (const auto* tensor = std::get_if<TensorRef>(&op.arguments[argument].value))
        found[at(step.tensors[at(tensor->index)].storage)] = true;
    }
  }
  return found;
}

// From the last operator to the first: an input of an operator that passes gradients on leads where its
// output leads.
std::vector<bool> makes_parameter_gradient(const CapturedStep& step) {
  std::vector<bool> leads(step.storages.size(), false);
  for (std::size_t i = 0; i < step.storages.size(); ++i)
    leads[i] = step.storages[i].role == StorageRole::gradient;
  std::vector<bool> makes(step.operators.size(), false);
  for (std::size_t i = step.operators.size(); i-- > 0;) {
    const CapturedOperator& op = step.operators[i];
    if (op.phase != StepPhase::backward) continue;
    makes[i] = std::any_of(op.outputs.begin(), op.outputs.end(), [&](int tensor) {
      return tensor >= 0 && leads[at(step.tensors[at(tensor)].storage)];
    });
    if (!makes[i] || !passes_on(op.name)) continue;
    each_tensor(op.arguments, [&](int tensor) {
      const int storage = step.tensors[at(tensor)].storage;
      if (step.storages[at(storage)].role == StorageRole::gradient_map) leads[at(storage)] = true;
    });
  }
  return makes;
}

std::vector<TrainedParameter> trained_parameters(const CapturedStep& step) {
  std::map<std::string_view, int> parameters;
  for (std::size_t i = 0; i < step.storages.size(); ++i) {
    if (step.storages[i].role == StorageRole::parameter)
      parameters.try_emplace(step.storages[i].name, static_cast<int>(i));
  }
  const std::vector<Size> elements = elements_of_storages(step);
  std::vector<TrainedParameter> trained;
  std::vector<int> place(step.storages.size(), -1);
  for (std::size_t i = 0; i < step.storages.size(); ++i) {
    const CapturedStorage& storage = step.storages[i];
    if (storage.role != StorageRole::gradient) continue;
    const auto parameter = parameters.find(storage.name);
    place[i] = static_cast<int>(trained.size());
    trained.push_back({.parameter = parameter == parameters.end() ? -1 : parameter->second,
                       .gradient = static_cast<int>(i),
                       .elements = elements[i]});
  }
  for (std::size_t i = 0; i < step.operators.size(); ++i) {
    if (step.operators[i].phase != StepPhase::backward) continue;
    for (const int tensor : step.operators[i].outputs) {
      if (tensor < 0) continue;
      const int of = place[at(step.tensors[at(tensor)].storage)];
      if (of >= 0) trained[at(of)].last_operator = static_cast<int>(i);
    }
  }
  return trained;
}

}  // namespace tbdsim
