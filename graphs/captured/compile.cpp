#include "graphs/captured/compile.h"

#include <algorithm>
#include <map>
#include <set>

#include "graphs/captured/compiled_parts.h"
#include "graphs/captured/operator_table.h"

namespace tbdsim {
namespace {

constexpr std::size_t kMostParts = 64;  // of a kernel: torch/_inductor/config.py, max_fusion_size
// Parts that read the same tensor without one feeding the other join only so near to each other: a kernel
// keeps what it reads until its last part has run. An estimate.
constexpr std::size_t kNear = 32;

std::size_t at(int index) { return static_cast<std::size_t>(index); }

// Parts that run as one kernel, or operators of a library.
struct Group {
  PartKind kind = PartKind::pointwise;  // of its reduction, if it has one
  StepPhase phase = StepPhase::forward;
  Size elements, results;
  std::vector<std::size_t> parts;
  bool open = true;  // nothing outside has read its results yet
  int merged_into = -1;
};

// Goes through the parts in order. A part joins the open groups whose results it reads, if their loops agree.
// A group is closed once a part outside reads one of its results: open groups do not depend on each other, so
// that any of them may become one, and each can run where its last part is.
class Fusion {
 public:
  Fusion(const CapturedStep& step, const std::vector<CompiledPart>& parts)
      : step_(step),
        parts_(parts),
        group_of_(parts.size(), -1),
        writer_(step.storages.size(), -1),
        reader_(step.storages.size(), -1) {
    for (std::size_t i = 0; i < parts.size(); ++i) place(i);
  }

  // In the order in which they run.
  [[nodiscard]] std::vector<Group> groups() && {
    std::erase_if(groups_, [](const Group& group) { return group.merged_into >= 0; });
    for (Group& group : groups_) std::ranges::sort(group.parts);
    std::ranges::sort(groups_, {}, [](const Group& group) { return group.parts.back(); });
    return std::move(groups_);
  }

 private:
  [[nodiscard]] int storage_of(int tensor) const { return step_.tensors[at(tensor)].storage; }
  [[nodiscard]] StepPhase phase_of(const CompiledPart& part) const { return step_.operators[part.op].phase; }

  [[nodiscard]] int merged(int group) const {
    while (group >= 0 && groups_[at(group)].merged_into >= 0) group = groups_[at(group)].merged_into;
    return group;
  }

  void place(std::size_t i) {
    const CompiledPart& part = parts_[i];
    const bool joins = part.kind != PartKind::view && part.kind != PartKind::call;
    const int group = joins ? group_for(i) : -1;
    if (group < 0) {
      if (part.kind != PartKind::view) close_producers(i, -1);
      groups_.push_back({.kind = part.kind,
                         .phase = phase_of(part),
                         .elements = part.elements,
                         .results = part.results,
                         .parts = {i},
                         .open = joins});
      group_of_[i] = static_cast<int>(groups_.size()) - 1;
    } else {
      join(group, i);
    }
    if (part.kind == PartKind::view) return;
    for (const int tensor : part.reads) reader_[at(storage_of(tensor))] = group_of_[i];
    for (const int tensor : part.writes) writer_[at(storage_of(tensor))] = group_of_[i];
  }

  // Open groups whose results the part reads, each once.
  [[nodiscard]] std::vector<int> producers_of(std::size_t i) const {
    std::vector<int> found;
    const auto append = [&](int group) {
      group = merged(group);
      if (group >= 0 && groups_[at(group)].open && std::ranges::find(found, group) == found.end())
        found.push_back(group);
    };
    if (parts_[i].reads_above) append(group_of_[i - 1]);
    for (const int tensor : parts_[i].reads) append(writer_[at(storage_of(tensor))]);
    return found;
  }

  void close_producers(std::size_t i, int but) {
    for (const int group : producers_of(i)) {
      if (group != but) groups_[at(group)].open = false;
    }
  }

  // The group that part i joins, with all of its open producers that fit merged into one; -1: none.
  int group_for(std::size_t i) {
    int group = -1;
    for (const int producer : producers_of(i)) {
      if (!fits(groups_[at(producer)], i)) continue;
      if (group < 0) {
        group = producer;
      } else if (can_merge(groups_[at(group)], groups_[at(producer)])) {
        merge(group, producer);
      }
    }
    if (group < 0) group = neighbor_of(i);
    if (group >= 0) close_producers(i, group);
    return group;
  }

  // An open group that reads what the part reads, in the same loop.
  [[nodiscard]] int neighbor_of(std::size_t i) const {
    const CompiledPart& part = parts_[i];
    if (!producers_of(i).empty()) return -1;
    for (const int tensor : part.reads) {
      const int group = merged(reader_[at(storage_of(tensor))]);
      if (group < 0) continue;
      const Group& candidate = groups_[at(group)];
      const bool near = i - candidate.parts.back() <= kNear;
      if (near && candidate.open && candidate.elements == part.elements && fits(candidate, i)) return group;
    }
    return -1;
  }

  // True if the part reads what a reduction of the group has only once it has seen all elements.
  [[nodiscard]] bool waits_for(const Group& group, std::size_t i) const {
    const auto reads = [&](int storage) {
      return std::ranges::any_of(parts_[i].reads, [&](int tensor) { return storage_of(tensor) == storage; });
    };
    return std::ranges::any_of(group.parts, [&](std::size_t member) {
      if (parts_[member].kind != PartKind::columns) return false;
      if (parts_[i].reads_above && member == i - 1) return true;
      return std::ranges::any_of(parts_[member].writes,
                                 [&](int tensor) { return reads(storage_of(tensor)); });
    });
  }

  [[nodiscard]] bool fits(const Group& group, std::size_t i) const {
    const CompiledPart& part = parts_[i];
    if (group.phase != phase_of(part) || group.parts.size() >= kMostParts) return false;
    if (part.kind == PartKind::pointwise) {
      const bool of_results = group.kind != PartKind::pointwise && part.elements == group.results;
      if (of_results) return true;
      if (waits_for(group, i)) return false;
      return part.elements == group.elements ||
             (group.kind == PartKind::pointwise && group.elements.at(2) < part.elements.at(2));
    }
    if (waits_for(group, i) || part.elements != group.elements) return false;
    return group.kind == PartKind::pointwise || (group.kind == part.kind && group.results == part.results);
  }

  // Loops over the same elements; or the smaller one's numbers are computed where they are read.
  [[nodiscard]] static bool can_merge(const Group& a, const Group& b) {
    if (a.parts.size() + b.parts.size() >= kMostParts) return false;
    const bool both_reduce = a.kind != PartKind::pointwise && b.kind != PartKind::pointwise;
    if (both_reduce && (a.kind != b.kind || a.results != b.results)) return false;
    if (a.elements == b.elements) return true;
    const Group& smaller = a.elements.at(2) < b.elements.at(2) ? a : b;
    return smaller.kind == PartKind::pointwise;
  }

  void merge(int into, int from) {
    Group& a = groups_[at(into)];
    Group& b = groups_[at(from)];
    if (a.kind == PartKind::pointwise) {
      a.kind = b.kind;
      a.results = b.results;
    }
    if (b.elements.at(2) > a.elements.at(2)) a.elements = b.elements;
    a.parts.insert(a.parts.end(), b.parts.begin(), b.parts.end());
    std::ranges::sort(a.parts);
    b.merged_into = into;
  }

  void join(int number, std::size_t i) {
    Group& group = groups_[at(number)];
    const CompiledPart& part = parts_[i];
    if (part.kind != PartKind::pointwise) {
      group.kind = part.kind;
      group.results = part.results;
    }
    if (part.elements.at(2) > group.elements.at(2)) group.elements = part.elements;
    group.parts.push_back(i);
    group_of_[i] = number;
  }

  const CapturedStep& step_;
  const std::vector<CompiledPart>& parts_;
  std::vector<Group> groups_;
  std::vector<int> group_of_;         // of each part, when it was placed
  std::vector<int> writer_, reader_;  // by storage: the last group that writes it, that reads it
};

// Writes the groups as operators of a new step.
class Rewriting {
 public:
  Rewriting(const CapturedStep& step, const CompiledParts& compiled, const std::vector<Group>& groups)
      : step_(step), compiled_(compiled), groups_(groups), uses_(step.storages.size()) {
    for (std::size_t g = 0; g < groups.size(); ++g) {
      for (const std::size_t part : groups[g].parts) note_uses(compiled.parts[part], static_cast<int>(g));
    }
  }

  CapturedStep run() {
    CapturedStep made = step_;
    made.operators.clear();
    for (std::size_t g = 0; g < groups_.size(); ++g) made.operators.push_back(operator_of(groups_[g]));
    for (std::size_t i = 0; i < made.storages.size(); ++i) {
      CapturedStorage& storage = made.storages[i];
      const Uses& uses = uses_[i];
      if (stays_inside(static_cast<int>(i))) storage.bytes = {};
      if (storage.born >= 0) storage.born = std::max(0, uses.first_written);
      if (storage.freed >= 0) storage.freed = std::max(storage.born, uses.last);
    }
    return made;
  }

 private:
  // Groups that use a storage.
  struct Uses {
    int first_written = -1, first = -1, last = -1;
  };

  [[nodiscard]] int storage_of(int tensor) const { return step_.tensors[at(tensor)].storage; }

  void note_uses(const CompiledPart& part, int group) {
    for (const int tensor : part.writes) {
      Uses& uses = uses_[at(storage_of(tensor))];
      if (uses.first_written < 0) uses.first_written = group;
    }
    if (part.kind == PartKind::view) return;
    for (const std::vector<int>* tensors : {&part.reads, &part.writes}) {
      for (const int tensor : *tensors) {
        Uses& uses = uses_[at(storage_of(tensor))];
        if (uses.first < 0) uses.first = group;
        uses.last = group;
      }
    }
  }

  // True for a storage that one generated kernel makes and uses, and nothing else.
  [[nodiscard]] bool stays_inside(int storage) const {
    const Uses& uses = uses_[at(storage)];
    const CapturedStorage& recorded = step_.storages[at(storage)];
    return recorded.born >= 0 && recorded.freed >= 0 && recorded.role != StorageRole::gradient &&
           uses.first >= 0 && uses.first == uses.last && groups_[at(uses.first)].kind != PartKind::call;
  }

  [[nodiscard]] CapturedOperator operator_of(const Group& group) const {
    const CompiledPart& last = compiled_.parts[group.parts.back()];
    if (group.kind == PartKind::view || group.kind == PartKind::call) return compiled_.operators[last.op];
    std::map<int, int> read, written;  // tensors by their storage
    Size flops;
    for (const std::size_t number : group.parts) {
      const CompiledPart& part = compiled_.parts[number];
      flops += part.flops;
      for (const int tensor : part.reads) {
        const int storage = storage_of(tensor);
        if (written.contains(storage) || stays_inside(storage)) continue;
        const auto [kept, first] = read.try_emplace(storage, tensor);
        if (!first && is_wider(tensor, kept->second)) kept->second = tensor;
      }
      for (const int tensor : part.writes) {
        if (!stays_inside(storage_of(tensor))) written.try_emplace(storage_of(tensor), tensor);
      }
    }
    std::vector<Argument> inputs;
    for (const auto& [storage, tensor] : read) inputs.push_back({TensorRef{tensor}});
    CapturedOperator op{
        .name = group.kind == PartKind::pointwise ? "tbdsim.fused_pointwise" : "tbdsim.fused_reduction",
        .phase = group.phase,
        .module = step_.operators[last.op].module,
        .arguments = {{std::move(inputs)}, {group.elements}, {flops}},
        .outputs = {}};
    for (const auto& [storage, tensor] : written) op.outputs.push_back(tensor);
    return op;
  }

  [[nodiscard]] bool is_wider(int tensor, int than) const {
    return step_.tensors[at(tensor)].stored.at(2) > step_.tensors[at(than)].stored.at(2);
  }

  const CapturedStep& step_;
  const CompiledParts& compiled_;
  const std::vector<Group>& groups_;
  std::vector<Uses> uses_;
};

// torch/_inductor/graph.py, decide_layout_opt (from memory): images of convolutional networks are put
// channels last, unless convolutions of groups, many operators beside the convolutions, channels that become
// half or fewer, or few channels throughout speak against it.
bool optimizes_layout(const CapturedStep& step) {
  constexpr std::size_t kMostOperators = 300;  // for each convolution
  constexpr std::int64_t kFewChannels = 64;
  std::size_t convolutions = 0, others = 0;
  bool all_small = true;
  for (const CapturedOperator& op : step.operators) {
    if (op.phase == StepPhase::forward) ++others;
    if (name_in_table(op.name) != "convolution" || op.arguments.size() < 9) continue;
    const auto* weight = std::get_if<TensorRef>(&op.arguments[1].value);
    const auto* groups = std::get_if<Size>(&op.arguments[8].value);
    if (weight == nullptr || groups == nullptr) return false;
    const std::vector<Size>& shape = step.tensors[at(weight->index)].shape;
    if (shape.size() < 4) return false;
    ++convolutions;
    const std::int64_t filters = shape[0].fixed, channels = shape[1].fixed;
    if (groups->fixed > 1 && channels > 1) return false;
    if (filters * 2 <= channels && shape[2].fixed > 1) return false;
    all_small = all_small && filters <= kFewChannels && channels <= kFewChannels;
  }
  return convolutions > 0 && !all_small && others < kMostOperators * convolutions;
}

void put_channels_last(CapturedTensor& image) {
  if (image.shape.size() != 4 || image.shape[1].per_sample != 0) return;
  image.strides[1] = fixed_size(1);
  image.strides[3] = image.shape[1];
  image.strides[2] = image.shape[3] * image.shape[1].fixed;
}

// Images that convolutions read and write, but for the network's input.
void put_images_channels_last(CapturedStep& step) {
  const auto change = [&](const ArgumentValue& value) {
    if (const auto* tensor = std::get_if<TensorRef>(&value))
      put_channels_last(step.tensors[at(tensor->index)]);
  };
  for (const CapturedOperator& op : step.operators) {
    const std::string_view name = name_in_table(op.name);
    const bool forward = name == "convolution";
    if (!forward && name != "convolution_backward") continue;
    for (std::size_t i = 0; i < (forward ? 1U : 2U) && i < op.arguments.size(); ++i)
      change(op.arguments[i].value);
    if (!op.outputs.empty() && op.outputs[0] >= 0) put_channels_last(step.tensors[at(op.outputs[0])]);
  }
}

}  // namespace

CapturedStep compiled(const CapturedStep& step) {
  const CompiledParts parts = compiled_parts(step);
  const std::vector<Group> groups = Fusion(step, parts.parts).groups();
  CapturedStep made = Rewriting(step, parts, groups).run();
  if (optimizes_layout(step)) put_images_channels_last(made);
  return made;
}

}  // namespace tbdsim
