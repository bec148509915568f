#include "graphs/rewrites/offload.h"

#include <algorithm>

#include "graphs/rewrites/idle_activation.h"

namespace tbdsim {

TrainingStep with_offloaded_activations(const TrainingStep& step) {
  TrainingStep made = step;
  std::vector<std::size_t> offloaded;  // tensors in the order in which they are copied back
  for (std::size_t i = 0; i < step.tensors.size(); ++i) {
    if (is_idle_between_passes(step.tensors[i])) offloaded.push_back(i);
  }
  std::stable_sort(offloaded.begin(), offloaded.end(), [&](std::size_t a, std::size_t b) {
    return step.tensors[a].first_again < step.tensors[b].first_again;
  });
  for (std::size_t m = 0; m < offloaded.size(); ++m) {
    Tensor& before = made.tensors[offloaded[m]];
    before = one_piece_of(before);
    const int back = m == 0 ? before.first_again : step.tensors[offloaded[m - 1]].first_again;
    if (back <= before.last_forward + 1) {
      before = step.tensors[offloaded[m]];  // copied back at once: it stays
      continue;
    }
    Tensor after = before;
    after.first_use = back;
    before.last_use = before.last_forward + 1;  // the copy to the host overlaps the next kernel
    made.tensors.push_back(after);
  }
  return made;
}

std::vector<OffloadedActivation> offloaded_activations(const TrainingStep& step) {
  std::vector<OffloadedActivation> offloaded;
  for (const Tensor& tensor : step.tensors) {
    if (tensor.first_again < 0) continue;
    offloaded.push_back({tensor.last_forward, tensor.first_again, tensor.bytes * step.batches});
  }
  return offloaded;
}

}  // namespace tbdsim
