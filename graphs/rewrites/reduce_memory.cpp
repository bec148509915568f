#include "graphs/rewrites/reduce_memory.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include "graphs/parameter_updates.h"

namespace tbdsim {
namespace {

constexpr std::int64_t kHalfBytes = 2;

bool lies_idle(const Tensor& tensor) { return tensor.first_again >= 0 && tensor.bytes != Size{}; }

// What runs step by step leaves its pieces to the copy, and finds them again, one at a time.
Tensor one_piece_of(Tensor tensor) {
  tensor.bytes = {tensor.bytes.fixed / tensor.pieces, tensor.bytes.per_sample / tensor.pieces};
  tensor.pieces = 1;
  return tensor;
}

// A step into which kernels are put; indices of the old kernels are kept until all are in.
class Insertions {
 public:
  explicit Insertions(const TrainingStep& step) : step_(step) {}

  // Before kernel `at`; `copy_of`: the same work as that one, -1: as none. Returns its number.
  int before(int at, Kernel kernel, int copy_of = -1) {
    numbers_[at].push_back(static_cast<int>(inserted_.size()));
    inserted_.push_back({std::move(kernel), copy_of});
    return static_cast<int>(inserted_.size()) - 1;
  }

  // Places all; then indices can be asked for.
  TrainingStep apply() {
    TrainingStep made = step_;
    made.kernels.clear();
    place_.resize(step_.kernels.size());
    inserted_place_.resize(inserted_.size());
    for (std::size_t k = 0; k < step_.kernels.size(); ++k) {
      for (const int number : numbers_[static_cast<int>(k)]) put(number, made);
      place_[k] = static_cast<int>(made.kernels.size());
      made.kernels.push_back(step_.kernels[k]);
      if (made.kernels.back().duplicate_of >= 0)
        made.kernels.back().duplicate_of = of(made.kernels.back().duplicate_of);
    }
    for (Tensor& tensor : made.tensors) {
      tensor.first_use = of(tensor.first_use);
      tensor.last_use = of(tensor.last_use);
      if (tensor.first_again < 0) continue;
      tensor.last_forward = of(tensor.last_forward);
      tensor.first_again = of(tensor.first_again);
    }
    made.updates = parameter_updates(made);
    place_.push_back(static_cast<int>(made.kernels.size()));
    for (IndependentChains& chains : made.chains) {  // what is put in goes with the kernel before it
      for (int* begin : {&chains.first, &chains.second, &chains.end}) *begin = of(*begin);
    }
    return made;
  }

  [[nodiscard]] int of(int kernel) const { return place_[static_cast<std::size_t>(kernel)]; }
  [[nodiscard]] int of_inserted(int number) const {
    return inserted_place_[static_cast<std::size_t>(number)];
  }

 private:
  struct Inserted {
    Kernel kernel;
    int copy_of = -1;
  };

  void put(int number, TrainingStep& made) {
    const Inserted& inserted = inserted_[static_cast<std::size_t>(number)];
    inserted_place_[static_cast<std::size_t>(number)] = static_cast<int>(made.kernels.size());
    made.kernels.push_back(inserted.kernel);
    if (inserted.copy_of < 0) return;
    const int same = step_.kernels[static_cast<std::size_t>(inserted.copy_of)].duplicate_of;
    made.kernels.back().duplicate_of = of(same >= 0 ? same : inserted.copy_of);
  }

  const TrainingStep& step_;
  std::map<int, std::vector<int>> numbers_;  // of what comes before each kernel
  std::vector<Inserted> inserted_;
  std::vector<int> place_, inserted_place_;
};

// Kernels of the forward pass; 0 where it is not one stretch at the start.
int forward_kernels(const TrainingStep& step) {
  int count = 0;
  bool ended = false;
  for (const Kernel& kernel : step.kernels) {
    const bool forward = kernel.phase == Phase::forward;
    if (forward && ended) return 0;
    ended = ended || !forward;
    count += forward ? 1 : 0;
  }
  return count;
}

// First kernels of segments with about as many kept bytes each, and the end of the forward pass.
std::vector<int> segments_of(const TrainingStep& step, int forward) {
  constexpr double kTypicalBatch = 32;
  std::vector<double> kept(static_cast<std::size_t>(forward), 0);
  double all = 0, maps = 0;
  for (const Tensor& tensor : step.tensors) {
    if (!lies_idle(tensor) || tensor.first_use >= forward) continue;
    kept[static_cast<std::size_t>(tensor.first_use)] += tensor.bytes.at(kTypicalBatch);
    all += tensor.bytes.at(kTypicalBatch);
    ++maps;
  }
  const double share = all / std::max(1.0, std::ceil(std::sqrt(maps)));
  std::vector<int> first{0};
  double sum = 0;
  for (int k = 0; k < forward; ++k) {
    const auto at = static_cast<std::size_t>(k);
    const bool new_layer = k > 0 && step.kernels[at].layer != step.kernels[at - 1].layer;
    if (new_layer && sum >= share) {
      first.push_back(k);
      sum = 0;
    }
    sum += kept[at];
  }
  first.push_back(forward);
  return first;
}

// Of one step: where its segments begin, and where their kernels run again.
struct Recomputation {
  std::vector<int> first;   // of each segment; then the end of the forward pass
  std::vector<int> copies;  // number of each forward kernel's copy, -1: none
  [[nodiscard]] std::size_t segment_of(int kernel) const {
    return static_cast<std::size_t>(std::upper_bound(first.begin(), first.end(), kernel) - first.begin()) - 1;
  }
  [[nodiscard]] int end_of(std::size_t segment) const { return first[segment + 1]; }
  [[nodiscard]] bool runs_again(int kernel) const {
    return kernel < first.back() && copies[static_cast<std::size_t>(kernel)] >= 0;
  }
};

// It is made again: nothing after its own segment reads it in the forward pass.
bool is_dropped(const Tensor& tensor, const Recomputation& plan) {
  return lies_idle(tensor) && plan.runs_again(tensor.first_use) &&
         tensor.last_forward < plan.end_of(plan.segment_of(tensor.first_use));
}

// The first kernel of the backward pass that reads what each segment drops; -1: none does.
std::vector<int> first_needs(const TrainingStep& step, const Recomputation& plan) {
  std::vector<int> needed(plan.first.size() - 1, -1);
  for (const Tensor& tensor : step.tensors) {
    if (!lies_idle(tensor) || tensor.first_use >= plan.first.back()) continue;
    const std::size_t segment = plan.segment_of(tensor.first_use);
    if (tensor.last_forward >= plan.end_of(segment)) continue;
    int& first = needed[segment];
    first = first < 0 ? tensor.first_again : std::min(first, tensor.first_again);
  }
  return needed;
}

// Tensors of kernels that run again: each lives until its last reader in the forward pass, and again from its
// kernel's copy on. What the next segment starts from stays until that ran again.
void give_second_lives(const TrainingStep& step, const Recomputation& plan, const Insertions& insertions,
                       TrainingStep& made) {
  const auto copy_of = [&](int kernel) {
    return insertions.of_inserted(plan.copies[static_cast<std::size_t>(kernel)]);
  };
  for (std::size_t i = 0; i < step.tensors.size(); ++i) {
    const Tensor& old = step.tensors[i];
    if (old.role != TensorRole::feature_map || old.first_use >= plan.first.back()) continue;
    const std::size_t segment = plan.segment_of(old.first_use);
    const int last_read = lies_idle(old) ? old.last_forward : old.last_use;
    const bool read_beyond = last_read >= plan.end_of(segment);
    if (read_beyond && plan.runs_again(plan.end_of(segment))) {
      const int end_of_next = copy_of(plan.end_of(segment + 1) - 1);
      made.tensors[i].last_use = std::max(made.tensors[i].last_use, end_of_next);
    }
    if (read_beyond || !plan.runs_again(old.first_use)) continue;
    Tensor again = made.tensors[i];
    again.first_use = copy_of(old.first_use);
    if (!is_dropped(old, plan)) again.last_use = copy_of(last_read);
    again.last_forward = again.first_again = -1;
    made.tensors[i].last_use = insertions.of(last_read);
    made.tensors[i].last_forward = made.tensors[i].first_again = -1;
    made.tensors.push_back(again);
  }
}

}  // namespace

std::optional<TrainingStep> with_recomputation(const TrainingStep& step) {
  const int forward = forward_kernels(step);
  if (forward == 0) return std::nullopt;
  Recomputation plan{segments_of(step, forward), std::vector<int>(static_cast<std::size_t>(forward), -1)};
  const std::vector<int> needed = first_needs(step, plan);
  Insertions insertions(step);
  bool any = false;
  for (std::size_t s = 0; s + 1 < needed.size(); ++s) {  // the last keeps what it has
    if (needed[s] < 0) continue;
    any = true;
    for (int k = plan.first[s]; k < plan.end_of(s); ++k) {
      plan.copies[static_cast<std::size_t>(k)] =
          insertions.before(needed[s], step.kernels[static_cast<std::size_t>(k)], k);
    }
  }
  if (!any) return std::nullopt;
  TrainingStep made = insertions.apply();
  give_second_lives(step, plan, insertions, made);
  return made;
}

TrainingStep with_half_precision_maps(const TrainingStep& step) {
  Insertions insertions(step);
  std::vector<std::pair<std::size_t, std::pair<int, int>>> converted;  // tensor, its two kernels
  for (std::size_t i = 0; i < step.tensors.size(); ++i) {
    const Tensor& tensor = step.tensors[i];
    if (!lies_idle(tensor) || tensor.library_state || tensor.role != TensorRole::feature_map) continue;
    const Kernel& writer = step.kernels[static_cast<std::size_t>(tensor.first_use)];
    if (writer.element_bytes <= kHalfBytes) continue;
    const Size half{tensor.bytes.fixed / 2, tensor.bytes.per_sample / 2};
    const Shape elements{{half.fixed / 2, half.per_sample / 2}, {}};
    const auto convert = [&](Phase phase, Size from, Size to) {
      Kernel kernel = memory_kernel(KernelKind::elementwise, phase, "convert", elements, 1, from, to);
      kernel.layer = tensor.layer;
      return kernel;
    };
    const int down = insertions.before(tensor.last_forward + 1, convert(Phase::forward, tensor.bytes, half));
    const int up = insertions.before(tensor.first_again, convert(Phase::backward_data, half, tensor.bytes));
    converted.push_back({i, {down, up}});
  }
  TrainingStep made = insertions.apply();
  for (const auto& [i, kernels] : converted) {
    Tensor half = made.tensors[i];
    Tensor& before = made.tensors[i] = one_piece_of(half);
    before.last_forward = before.first_again = half.last_forward = half.first_again = -1;
    Tensor after = before;
    half.bytes = {half.bytes.fixed / 2, half.bytes.per_sample / 2};
    half.first_use = before.last_use = insertions.of_inserted(kernels.first);
    half.last_use = after.first_use = insertions.of_inserted(kernels.second);
    made.tensors.push_back(half);
    made.tensors.push_back(after);
  }
  return made;
}

TrainingStep with_maps_on_host(const TrainingStep& step) {
  TrainingStep made = step;
  std::vector<std::size_t> maps;  // in the order in which they come back
  for (std::size_t i = 0; i < step.tensors.size(); ++i) {
    if (lies_idle(step.tensors[i])) maps.push_back(i);
  }
  std::stable_sort(maps.begin(), maps.end(), [&](std::size_t a, std::size_t b) {
    return step.tensors[a].first_again < step.tensors[b].first_again;
  });
  for (std::size_t m = 0; m < maps.size(); ++m) {
    Tensor& before = made.tensors[maps[m]] = one_piece_of(made.tensors[maps[m]]);
    const int back = m == 0 ? before.first_again : step.tensors[maps[m - 1]].first_again;
    if (back <= before.last_forward + 1) {
      before = step.tensors[maps[m]];  // hardly idle
      continue;
    }
    Tensor after = before;
    after.first_use = back;
    before.last_use = before.last_forward + 1;  // the copy runs beside the next kernel
    made.tensors.push_back(after);
  }
  return made;
}

std::vector<OffloadedActivation> maps_on_host(const TrainingStep& step) {
  std::vector<OffloadedActivation> maps;
  for (const Tensor& tensor : step.tensors) {
    if (tensor.first_again >= 0) maps.push_back({tensor.last_forward, tensor.first_again, tensor.bytes});
  }
  return maps;
}

}  // namespace tbdsim
