#include "graphs/rewrites/half_precision_activations.h"

#include <vector>

#include "graphs/layer.h"
#include "graphs/rewrites/idle_activation.h"
#include "graphs/rewrites/kernel_insertions.h"

namespace tbdsim {
namespace {

constexpr std::int64_t kHalfBytes = 2;

// An activation's index and the numbers of the two kernels that convert it.
struct Conversion {
  std::size_t tensor = 0;
  int to_half = 0;
  int to_full = 0;
};

}  // namespace

TrainingStep with_half_precision_activations(const TrainingStep& step) {
  KernelInsertions insertions(step);
  std::vector<Conversion> conversions;
  for (std::size_t i = 0; i < step.tensors.size(); ++i) {
    const Tensor& tensor = step.tensors[i];
    if (!is_idle_between_passes(tensor) || tensor.library_state || tensor.role != TensorRole::feature_map)
      continue;
    const Kernel& writer = step.kernels[static_cast<std::size_t>(tensor.first_use)];
    if (writer.element_bytes <= kHalfBytes) continue;
    const Size half{tensor.bytes.fixed / 2, tensor.bytes.per_sample / 2};
    const Shape elements{{half.fixed / 2, half.per_sample / 2}, {}};
    const auto convert = [&](Phase phase, Size from, Size to) {
      Kernel kernel = memory_kernel(KernelKind::elementwise, phase, "convert", elements, 1, from, to);
      kernel.layer = tensor.layer;
      return kernel;
    };
    const int to_half =
        insertions.before(tensor.last_forward + 1, convert(Phase::forward, tensor.bytes, half));
    const int to_full =
        insertions.before(tensor.first_again, convert(Phase::backward_data, half, tensor.bytes));
    conversions.push_back({i, to_half, to_full});
  }
  TrainingStep made = insertions.apply();
  for (const Conversion& conversion : conversions) {
    Tensor half = made.tensors[conversion.tensor];
    Tensor& before = made.tensors[conversion.tensor];
    before = one_piece_of(half);
    before.last_forward = before.first_again = -1;
    half.last_forward = half.first_again = -1;
    Tensor after = before;
    half.bytes = {half.bytes.fixed / 2, half.bytes.per_sample / 2};
    half.first_use = before.last_use = insertions.index_of_inserted(conversion.to_half);
    half.last_use = after.first_use = insertions.index_of_inserted(conversion.to_full);
    made.tensors.push_back(half);
    made.tensors.push_back(after);
  }
  return made;
}

}  // namespace tbdsim
