#include "graphs/parameter_updates.h"

#include <algorithm>

namespace tbdsim {

std::vector<ParameterUpdate> parameter_updates(const TrainingStep& step) {
  std::vector<ParameterUpdate> updates;
  std::vector<int> last(step.layers.size(), 0);  // kernel of each layer
  int over_all = 0;
  for (int k = 0; k < static_cast<int>(step.kernels.size()); ++k) {
    const Kernel& kernel = step.kernels[static_cast<std::size_t>(k)];
    if (updates_parameter(kernel)) {
      updates.push_back({k, std::max(last[static_cast<std::size_t>(kernel.layer)], over_all)});
    } else if (kernel.layer >= 0) {
      last[static_cast<std::size_t>(kernel.layer)] = k;
    } else if (kernel.phase == Phase::backward_weights || kernel.phase == Phase::update) {
      over_all = k;
    }
  }
  std::stable_sort(updates.begin(), updates.end(),
                   [](const ParameterUpdate& a, const ParameterUpdate& b) { return a.after < b.after; });
  return updates;
}

}  // namespace tbdsim
