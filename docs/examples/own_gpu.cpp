// Compares a GPU described in a YAML file with one of the catalogue: own_gpu MY_GPU.yaml
#include <cstdio>

#include <simulate/tbdsim.h>

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: own_gpu MY_GPU.yaml\n", stderr);
    return 2;
  }
  tbdsim::SpecCache specs(tbdsim::Catalog::from(TBDSIM_DATA_DIR));
  for (const char* gpu : {static_cast<const char*>(argv[1]), "h100_sxm"}) {
    const tbdsim::Prediction p = tbdsim::predict(
        {.model = "resnet50", .framework = "pytorch", .gpu = gpu, .batch = 64, .precision = "amp"}, specs);
    const tbdsim::Interval expected = p.throughput_interval();
    std::printf("%-14s %6.0f images/s, 80 %% of measurements between %.0f and %.0f\n", gpu, p.throughput(),
                expected.low, expected.high);
  }
}
