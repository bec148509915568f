#include "graphs/rewrites/recompute.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "graphs/rewrites/idle_activation.h"
#include "graphs/rewrites/kernel_insertions.h"

namespace tbdsim {
namespace {

// Number of kernels of the forward pass; 0 where forward kernels do not all come first.
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

// First kernel of each segment, then the end of the forward pass. The ceil(sqrt(n)) segments, n the number of
// kept activations, keep about as many bytes each.
std::vector<int> segments_of(const TrainingStep& step, int forward) {
  constexpr double kTypicalBatch = 32;
  std::vector<double> kept(static_cast<std::size_t>(forward), 0);
  double all = 0;
  double activations = 0;
  for (const Tensor& tensor : step.tensors) {
    if (!is_idle_between_passes(tensor) || tensor.first_use >= forward) continue;
    kept[static_cast<std::size_t>(tensor.first_use)] += tensor.bytes.at(kTypicalBatch);
    all += tensor.bytes.at(kTypicalBatch);
    ++activations;
  }
  const double share = all / std::max(1.0, std::ceil(std::sqrt(activations)));
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

// The part of the step that a forward kernel is in; -1: it is in none that runs again.
int part_of(const TrainingStep& step, int kernel, Recomputed parts) {
  const int layer = step.kernels[static_cast<std::size_t>(kernel)].layer;
  if (layer < 0) return -1;
  const LayerSummary& at = step.layers[static_cast<std::size_t>(layer)];
  if (parts == Recomputed::blocks) return at.repetition;
  return at.type == "attention" ? layer : -1;
}

// A segment for each part and for what lies between them.
std::vector<int> segments_by_part(const TrainingStep& step, int forward, Recomputed parts) {
  std::vector<int> first{0};
  for (int k = 1; k < forward; ++k) {
    if (part_of(step, k, parts) != part_of(step, k - 1, parts)) first.push_back(k);
  }
  first.push_back(forward);
  return first;
}

// Where the segments of a step begin, and where their kernels run again.
struct Recomputation {
  std::vector<int> first;   // kernel of each segment; then the end of the forward pass
  std::vector<int> copies;  // number of each forward kernel's insertion; -1: it does not run again

  [[nodiscard]] std::size_t segment_of(int kernel) const {
    return static_cast<std::size_t>(std::upper_bound(first.begin(), first.end(), kernel) - first.begin()) - 1;
  }
  [[nodiscard]] int end_of(std::size_t segment) const { return first[segment + 1]; }
  [[nodiscard]] bool runs_again(int kernel) const {
    return kernel < first.back() && copies[static_cast<std::size_t>(kernel)] >= 0;
  }
};

// True for an activation that is freed and computed again: only its own segment reads it in the forward pass.
bool is_dropped(const Tensor& tensor, const Recomputation& plan) {
  return is_idle_between_passes(tensor) && plan.runs_again(tensor.first_use) &&
         tensor.last_forward < plan.end_of(plan.segment_of(tensor.first_use));
}

// For each segment the first kernel of the backward pass that reads an activation the segment frees; -1:
// there is none.
std::vector<int> first_needs(const TrainingStep& step, const Recomputation& plan) {
  std::vector<int> needed(plan.first.size() - 1, -1);
  for (const Tensor& tensor : step.tensors) {
    if (!is_idle_between_passes(tensor) || tensor.first_use >= plan.first.back()) continue;
    const std::size_t segment = plan.segment_of(tensor.first_use);
    if (tensor.last_forward >= plan.end_of(segment)) continue;
    int& first = needed[segment];
    first = first < 0 ? tensor.first_again : std::min(first, tensor.first_again);
  }
  return needed;
}

// Splits the lifetime of each tensor whose kernel runs again: up to its last reader in the forward pass, and
// from the copy of its kernel on. A tensor that the next segment reads lives until that segment has run
// again.
void split_lifetimes(const TrainingStep& step, const Recomputation& plan, const KernelInsertions& insertions,
                     TrainingStep& made) {
  const auto copy_of = [&](int kernel) {
    return insertions.index_of_inserted(plan.copies[static_cast<std::size_t>(kernel)]);
  };
  for (std::size_t i = 0; i < step.tensors.size(); ++i) {
    const Tensor& old = step.tensors[i];
    if (old.role != TensorRole::feature_map || old.first_use >= plan.first.back()) continue;
    const std::size_t segment = plan.segment_of(old.first_use);
    const int last_read = is_idle_between_passes(old) ? old.last_forward : old.last_use;
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
    made.tensors[i].last_use = insertions.index_of(last_read);
    made.tensors[i].last_forward = made.tensors[i].first_again = -1;
    made.tensors.push_back(again);
  }
}

}  // namespace

std::optional<TrainingStep> with_recomputation(const TrainingStep& step, Recomputed parts) {
  const int forward = forward_kernels(step);
  if (forward == 0) return std::nullopt;
  const bool by_part = parts != Recomputed::segments;
  Recomputation plan{by_part ? segments_by_part(step, forward, parts) : segments_of(step, forward),
                     std::vector<int>(static_cast<std::size_t>(forward), -1)};
  const std::vector<int> needed = first_needs(step, plan);
  KernelInsertions insertions(step);
  bool any = false;
  for (std::size_t s = 0; s < needed.size(); ++s) {
    const bool kept = by_part ? part_of(step, plan.first[s], parts) < 0 : s + 1 == needed.size();
    if (kept || needed[s] < 0) continue;
    any = true;
    for (int k = plan.first[s]; k < plan.end_of(s); ++k) {
      plan.copies[static_cast<std::size_t>(k)] =
          insertions.before(needed[s], step.kernels[static_cast<std::size_t>(k)], k);
    }
  }
  if (!any) return std::nullopt;
  TrainingStep made = insertions.apply();
  split_lifetimes(step, plan, insertions, made);
  return made;
}

}  // namespace tbdsim
