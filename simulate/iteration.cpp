#include "simulate/iteration.h"

#include <cassert>

namespace tbdsim {

Timeline simulate_iteration(const TrainingStep& step, std::span<const KernelCost> costs) {
  assert(costs.size() == step.kernels.size());
  Timeline timeline;
  timeline.kernels.reserve(costs.size());
  for (std::size_t k = 0; k < costs.size(); ++k) {
    const Seconds start = timeline.iteration;
    timeline.iteration += costs[k].total * static_cast<double>(step.kernels[k].repeat);
    timeline.kernels.push_back({start, timeline.iteration});
  }
  return timeline;
}

}  // namespace tbdsim
