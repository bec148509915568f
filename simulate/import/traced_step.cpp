#include "simulate/import/traced_step.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "graphs/captured/operator_table.h"
#include "hwspecs/base/error.h"

namespace tbdsim {
namespace {

using Json = nlohmann::ordered_json;
using Both = std::pair<std::int64_t, std::int64_t>;  // a number of the first trace and of the second

constexpr std::string_view kRenamed = "traced";

[[noreturn]] void fail(const std::string& place, const std::string& what) {
  throw SpecError(Mark{.file = std::make_shared<const std::string>(place)}, what);
}

[[noreturn]] void differ(const TracedOperator& a, const TracedOperator& b, const std::string& how) {
  fail(a.place,
       fmt::format(
           "{} is not as in {}, {}: {}; expected two traces of one step that differ in the batch alone",
           a.name.empty() ? "a gradient" : a.name, b.place, b.name.empty() ? "a gradient" : b.name, how));
}

// Calls visit(a, b) for each pair of tensors of two values.
template <class Visit>
void each_pair(const TracedValue& a, const TracedValue& b, Visit visit) {
  if (const auto* tensor = std::get_if<TracedTensor>(&a.value))
    visit(*tensor, std::get<TracedTensor>(b.value));
  if (const auto* list = std::get_if<std::vector<TracedValue>>(&a.value)) {
    const auto& other = std::get<std::vector<TracedValue>>(b.value);
    for (std::size_t i = 0; i < list->size(); ++i) each_pair((*list)[i], other[i], visit);
  }
}

bool alike(const TracedValue& a, const TracedValue& b) {
  if (a.value.index() != b.value.index()) return false;
  if (const auto* tensor = std::get_if<TracedTensor>(&a.value)) {
    const auto& other = std::get<TracedTensor>(b.value);
    return tensor->dtype == other.dtype && tensor->shape.size() == other.shape.size() &&
           tensor->on_gpu == other.on_gpu;
  }
  if (const auto* list = std::get_if<std::vector<TracedValue>>(&a.value)) {
    const auto& other = std::get<std::vector<TracedValue>>(b.value);
    return list->size() == other.size() &&
           std::equal(list->begin(), list->end(), other.begin(),
                      [](const auto& x, const auto& y) { return alike(x, y); });
  }
  return true;
}

bool all_alike(const std::vector<TracedValue>& a, const std::vector<TracedValue>& b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), alike);
}

// Bytes that a tensor reaches in its storage.
std::int64_t reach(const TracedTensor& tensor) {
  std::int64_t last = tensor.offset;
  for (std::size_t i = 0; i < tensor.shape.size(); ++i) {
    if (tensor.shape[i] == 0) return 0;
    std::int64_t span = 0;
    if (__builtin_mul_overflow(tensor.shape[i] - 1, tensor.strides[i], &span) ||
        __builtin_add_overflow(last, span, &last))
      return std::numeric_limits<std::int64_t>::max();
  }
  std::int64_t bytes = 0;
  if (__builtin_mul_overflow(last + 1, bytes_of(tensor.dtype), &bytes))
    return std::numeric_limits<std::int64_t>::max();
  return bytes;
}

// A storage of the step, whose number in the trace may have meant another before.
struct Storage {
  StorageRole role = StorageRole::activation;
  Both bytes{0, 0};
  int born = -1, last = -1;  // operator that makes it, the last that uses it
  bool on_gpu = false, scalar = true;
  bool forward = false, updated = false;  // used in the forward or backward pass, in the update
  std::string name{};
};

class StepOfTraces {
 public:
  StepOfTraces(const ExecutionTrace& a, const ExecutionTrace& b) : a_(a), b_(b) {}

  std::string text() {
    require_same_operators();
    find_batches();
    for (std::size_t i = 0; i < a_.operators.size(); ++i) add(a_.operators[i], b_.operators[i]);
    choose_roles();
    name_parameters();
    return file().dump() + '\n';
  }
  [[nodiscard]] Both batches() const { return batch_; }
  [[nodiscard]] std::size_t operator_count() const { return operators_.size(); }

 private:
  void require_same_operators() const {
    const std::size_t count = std::min(a_.operators.size(), b_.operators.size());
    for (std::size_t i = 0; i < count; ++i) {
      const TracedOperator &a = a_.operators[i], &b = b_.operators[i];
      if (a.name != b.name || a.phase != b.phase) differ(a, b, "another operator");
      if (!all_alike(a.inputs, b.inputs)) differ(a, b, "inputs of other kinds");
      if (!all_alike(a.outputs, b.outputs)) differ(a, b, "outputs of other kinds");
    }
    if (a_.operators.size() != b_.operators.size())
      fail(a_.file,
           fmt::format("{} operators where {} has {}; expected two traces of one step that differ in the "
                       "batch alone",
                       a_.operators.size(), b_.file, b_.operators.size()));
  }

  void find_batches() {
    for (std::size_t i = 0; i < a_.operators.size(); ++i) {
      const auto visit = [this](const TracedTensor& a, const TracedTensor& b) {
        on_gpu_ = on_gpu_ || a.on_gpu;
        for (std::size_t d = 0; d < a.shape.size(); ++d) {
          const Both sizes{a.shape[d], b.shape[d]};
          if (sizes.first != sizes.second && (batch_.first == 0 || sizes < batch_)) batch_ = sizes;
        }
      };
      for (std::size_t j = 0; j < a_.operators[i].inputs.size(); ++j)
        each_pair(a_.operators[i].inputs[j], b_.operators[i].inputs[j], visit);
    }
    if (batch_.first < 1 || batch_.second < 1)
      fail(a_.file, "has the sizes of " + b_.file +
                        "; expected traces of two batches, of which sizes at any batch follow");
  }

  // a + b x batch; none where no whole b would do.
  [[nodiscard]] std::optional<Json> affine(Both sizes) const {
    if (sizes.first == sizes.second) return Json(sizes.first);
    const std::int64_t over = batch_.second - batch_.first;
    std::int64_t grows = 0, of_batch = 0, fixed = 0;
    if (__builtin_sub_overflow(sizes.second, sizes.first, &grows) || grows % over != 0 ||
        __builtin_mul_overflow(grows / over, batch_.first, &of_batch) ||
        __builtin_sub_overflow(sizes.first, of_batch, &fixed))
      return std::nullopt;
    return Json::array({fixed, grows / over});
  }

  [[nodiscard]] Json size(Both sizes, const std::string& place) const {
    if (const auto json = affine(sizes)) return *json;
    fail(place, fmt::format("a size of {} at batch {} and {} at {}; expected sizes a + b x batch",
                            sizes.first, batch_.first, sizes.second, batch_.second));
  }

  void add(const TracedOperator& a, const TracedOperator& b) {
    place_ = &a.place;
    if (a.name.empty()) {  // a parameter takes its gradient
      each_pair(a.inputs[0], b.inputs[0], [this](const TracedTensor& x, const TracedTensor& y) {
        if (x.shape.empty() && !x.on_gpu && on_gpu_) return;
        Storage& gradient = storages_[storage_of(x, y)];
        if (gradient.role != StorageRole::gradient) gradients_.push_back(current_.at(x.storage));
        gradient.role = StorageRole::gradient;
      });
      return;
    }
    const int number = static_cast<int>(operators_.size());
    std::set<std::int64_t> read;  // storages, by their numbers in the first trace
    Json arguments = Json::array();
    for (std::size_t i = 0; i < a.inputs.size(); ++i) {
      each_pair(a.inputs[i], b.inputs[i],
                [&](const TracedTensor& x, const TracedTensor&) { read.insert(x.storage); });
      arguments.push_back(argument(a.inputs[i], b.inputs[i], number, a.phase));
    }
    Json outputs = Json::array();
    for (std::size_t i = 0; i < a.outputs.size(); ++i) {
      const auto* x = std::get_if<TracedTensor>(&a.outputs[i].value);
      if (x == nullptr) {
        outputs.push_back(-1);
        continue;
      }
      if (!read.contains(x->storage)) begin_storage(*x, number, a.phase);
      outputs.push_back(tensor(*x, std::get<TracedTensor>(b.outputs[i].value), number, a.phase));
    }
    if (precision_.empty()) precision_ = precision_by(a);
    operators_.push_back({a.name, kStepPhaseNames[static_cast<std::size_t>(a.phase)], 0, std::move(arguments),
                          std::move(outputs)});
  }

  void begin_storage(const TracedTensor& tensor, int number, StepPhase phase) {
    constexpr std::array<StorageRole, 4> kRoles = {StorageRole::activation, StorageRole::gradient_map,
                                                   StorageRole::temporary, StorageRole::temporary};
    current_[tensor.storage] = storages_.size();
    storages_.push_back({.role = kRoles[static_cast<std::size_t>(phase)], .born = number, .last = number});
  }

  std::size_t storage_of(const TracedTensor& a, const TracedTensor& b) {
    const auto [found, is_new] = current_.emplace(a.storage, storages_.size());
    if (is_new) storages_.push_back({.role = StorageRole::input});
    Storage& storage = storages_[found->second];
    storage.bytes = {std::max(storage.bytes.first, reach(a)), std::max(storage.bytes.second, reach(b))};
    storage.on_gpu = storage.on_gpu || a.on_gpu;
    storage.scalar = storage.scalar && a.shape.empty();
    return found->second;
  }

  int tensor(const TracedTensor& a, const TracedTensor& b, int number, StepPhase phase) {
    const std::size_t storage = storage_of(a, b);
    Storage& of = storages_[storage];
    of.last = number;
    (phase == StepPhase::update || phase == StepPhase::zero ? of.updated : of.forward) = true;
    Json shape = Json::array(), strides = Json::array();
    for (std::size_t i = 0; i < a.shape.size(); ++i) {
      shape.push_back(size({a.shape[i], b.shape[i]}, *place_));
      strides.push_back(size({a.strides[i], b.strides[i]}, *place_));
    }
    Json json = {storage, kDtypeNames[static_cast<std::size_t>(a.dtype)], std::move(shape),
                 std::move(strides), size({a.offset, b.offset}, *place_)};
    const auto [found, is_new] = numbers_.emplace(json.dump(), static_cast<int>(tensors_.size()));
    if (is_new) tensors_.push_back(std::move(json));
    return found->second;
  }

  Json argument(const TracedValue& a, const TracedValue& b, int number, StepPhase phase) {
    if (const auto* x = std::get_if<TracedTensor>(&a.value))
      return {{"t", tensor(*x, std::get<TracedTensor>(b.value), number, phase)}};
    if (const auto* list = std::get_if<std::vector<TracedValue>>(&a.value)) {
      const auto& other = std::get<std::vector<TracedValue>>(b.value);
      Json json = Json::array();
      for (std::size_t i = 0; i < list->size(); ++i)
        json.push_back(argument((*list)[i], other[i], number, phase));
      return json;
    }
    if (const auto* whole = std::get_if<std::int64_t>(&a.value)) {
      const std::optional<Json> json = affine({*whole, std::get<std::int64_t>(b.value)});
      if (!json) return *whole;  // a seed, a time
      return json->is_array() ? Json{{"n", *json}} : *json;
    }
    if (const auto* flag = std::get_if<bool>(&a.value)) return *flag;
    if (const auto* real = std::get_if<double>(&a.value)) return *real;
    if (const auto* text = std::get_if<std::string>(&a.value)) return *text;
    return nullptr;
  }

  // The format in which the first product or convolution of the forward pass computes.
  [[nodiscard]] static std::string precision_by(const TracedOperator& op) {
    constexpr std::string_view kProducts[] = {"convolution", "mm", "addmm", "bmm", "baddbmm"};
    if (std::ranges::find(kProducts, name_in_table(op.name)) == std::end(kProducts)) return "";
    for (const TracedValue& value : op.inputs) {
      const auto* tensor = std::get_if<TracedTensor>(&value.value);
      if (tensor == nullptr) continue;
      if (tensor->dtype == Dtype::f16) return "fp16";
      if (tensor->dtype == Dtype::bf16) return "bf16";
    }
    return "fp32";
  }

  void choose_roles() {
    for (Storage& storage : storages_) {
      if (storage.born >= 0 || storage.role == StorageRole::gradient) continue;
      if (on_gpu_ ? !storage.on_gpu : storage.scalar) {
        storage.role = StorageRole::host;
      } else if (storage.updated) {
        storage.role = storage.forward ? StorageRole::parameter : StorageRole::state;
      } else {
        storage.role = storage.bytes.first == storage.bytes.second ? StorageRole::buffer : StorageRole::input;
      }
    }
  }

  // Parameters by number; a gradient has the name of the last parameter of its size that has none yet, as the
  // backward pass runs from the last to the first.
  void name_parameters() {
    std::vector<std::size_t> left;
    std::size_t number = 0;
    for (std::size_t i = 0; i < storages_.size(); ++i) {
      Storage& storage = storages_[i];
      if (storage.role == StorageRole::parameter) left.push_back(i);
      if (storage.role == StorageRole::parameter || storage.role == StorageRole::buffer ||
          storage.role == StorageRole::state)
        storage.name =
            fmt::format("{}_{}", kStorageRoleNames[static_cast<std::size_t>(storage.role)], number++);
    }
    for (const std::size_t gradient : gradients_) {
      const auto of = std::find_if(left.rbegin(), left.rend(), [&](std::size_t i) {
        return storages_[i].bytes == storages_[gradient].bytes;
      });
      if (of == left.rend()) continue;
      storages_[gradient].name = storages_[*of].name;
      left.erase(std::next(of).base());
    }
  }

  [[nodiscard]] std::string precision() const {
    if (precision_ != "fp16" && precision_ != "bf16") return "fp32";
    const bool pure = std::ranges::none_of(tensors_, [this](const Json& tensor) {
      return storages_[tensor[0].get<std::size_t>()].role == StorageRole::parameter && tensor[1] == "f32";
    });
    return (pure ? "pure_" : "") + precision_;
  }

  [[nodiscard]] Json file() const {
    const std::string name = file_name_of(std::filesystem::path(a_.file).stem().string(), kRenamed);
    Json storages = Json::array();
    for (const Storage& storage : storages_) {
      const bool stays = storage.born < 0 || storage.role == StorageRole::gradient;
      storages.push_back({kStorageRoleNames[static_cast<std::size_t>(storage.role)],
                          size(storage.bytes, a_.file), storage.born, stays ? -1 : storage.last,
                          storage.name});
    }
    return {{"format", "tbdsim step"},
            {"version", 1},
            {"name", name},
            {"title", name + " (execution traces)"},
            {"sample", "sample"},
            {"length", 0},
            {"captured_with", {{"torch", "of unknown version"}, {"batches", {batch_.first, batch_.second}}}},
            {"precision", precision()},
            {"channels_last", false},
            {"modules", Json::array({Json::array({"", "Module"})})},
            {"storages", std::move(storages)},
            {"tensors", tensors_},
            {"operators", operators_},
            {"warnings", {"storages are freed after their last use, as execution traces do not say when"}}};
  }

  const ExecutionTrace &a_, &b_;
  Both batch_{0, 0};
  bool on_gpu_ = false;                          // the step ran on a GPU: the rest is the host's
  std::map<std::int64_t, std::size_t> current_;  // storages by their number in the first trace
  std::vector<Storage> storages_;
  std::vector<std::size_t> gradients_;  // storages, in the order of the backward pass
  std::map<std::string, int> numbers_;  // tensors by their text
  std::vector<Json> tensors_, operators_;
  std::string precision_;
  const std::string* place_ = nullptr;  // of the operator at hand
};

}  // namespace

ImportedFile traced_step(const ExecutionTrace& first, const ExecutionTrace& second) {
  StepOfTraces step(first, second);
  ImportedFile file{.name = file_name_of(std::filesystem::path(first.file).stem().string(), kRenamed),
                    .text = step.text(),
                    .notes = {},
                    .extension = ".step.json"};
  file.notes = {fmt::format("{} operators at batches {} and {}", step.operator_count(), step.batches().first,
                            step.batches().second),
                "storages are freed after their last use, as execution traces do not say when"};
  return file;
}

}  // namespace tbdsim
