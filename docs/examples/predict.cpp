// Predicts one scenario: throughput, iteration time, memory, and what limits the iteration.
#include <cstdio>

#include <simulate/tbdsim.h>

int main() {
  tbdsim::SpecCache specs(tbdsim::Catalog::from(TBDSIM_DATA_DIR));
  const tbdsim::Scenario scenario{.model = "resnet50", .framework = "mxnet", .gpu = "titanxp", .batch = 64};
  const tbdsim::Prediction p = tbdsim::predict(scenario, specs);

  std::printf("%.0f images/s, %.0f ms an iteration, ", p.throughput(), 1e3 * p.iteration_time().si());
  std::printf("%.2f GiB\n", p.memory.total().si() / (1 << 30));
  for (std::size_t i = 0; i < tbdsim::kLimitNames.size(); ++i)
    std::printf("%-9s %4.1f %%\n", tbdsim::kLimitNames[i].data(), 100 * p.share(tbdsim::Limit(i)));
}
