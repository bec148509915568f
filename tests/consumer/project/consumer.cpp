// What a user's program looks like: predict one scenario and print it.
#include <cstdio>

#include <simulate/tbdsim.h>

int main() {
  tbdsim::SpecCache specs(tbdsim::Catalog::from(DATA_DIR));
  const tbdsim::Prediction p =
      tbdsim::predict({.model = "resnet50", .framework = "tensorflow", .gpu = "titanxp", .batch = 64}, specs);
  std::printf("%.1f images/s\n", p.throughput());
  return p.throughput() > 0 ? 0 : 1;
}
