// Prints the longest kernel of an iteration: its shape, time, what limits it and where its time comes from.
#include <algorithm>
#include <cstdio>

#include <simulate/tbdsim.h>

int main() {
  tbdsim::SpecCache specs(tbdsim::Catalog::from(TBDSIM_DATA_DIR));
  const tbdsim::Prediction p =
      tbdsim::predict({.model = "resnet50", .framework = "mxnet", .gpu = "titanxp", .batch = 64}, specs);

  const tbdsim::Iteration& iteration = p.typical();
  const auto shorter = [](const auto& a, const auto& b) { return a.total < b.total; };
  const auto longest = std::max_element(iteration.costs.begin(), iteration.costs.end(), shorter);
  const auto index = static_cast<std::size_t>(longest - iteration.costs.begin());
  const tbdsim::Kernel& kernel = iteration.step->kernels[index];
  const auto milliseconds = [](tbdsim::Seconds time) { return 1e3 * time.si(); };

  std::printf("kernel %zu of %zu: %s\n", index + 1, iteration.costs.size(), kernel.op.data());
  std::printf("shape      %s\n", tbdsim::shape_text(kernel, p.batch()).c_str());
  std::printf("algorithm  %s\n", tbdsim::name_of(longest->algorithm).data());
  std::printf("total      %.3f ms, %.0f %% of the iteration\n", milliseconds(longest->total),
              100 * (longest->total / p.iteration_time()));
  std::printf("compute    %.3f ms if only arithmetic limited it\n", milliseconds(longest->compute));
  std::printf("memory     %.3f ms if only bandwidth limited it\n", milliseconds(longest->memory));
  std::printf("overhead   %.3f ms\n", milliseconds(longest->overhead));
  std::printf("bound      %s\n", tbdsim::name_of(longest->bound).data());
  std::printf("source     %s, within a factor of %.2f\n", tbdsim::name_of(longest->provenance).data(),
              longest->factor());
}
