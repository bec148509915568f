// Profiles: Chrome traces (plain and gzip), CSV of nsys, nvprof and ncu.
#include <cmath>

#include "simulate/import/measured_run.h"
#include "tests/fuzz/memory_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tbdsim;
  const fuzz::MemoryFile file(data, size);
  return fuzz::run([&] {
    const MeasuredRun run = read_measured_run(file.path());
    fuzz::require(!run.kernels.empty() && run.steps >= 1 && std::isfinite(run.kernel_time.si()));
    for (const MeasuredKernel& kernel : run.kernels)
      fuzz::require(kernel.count >= 0 && kernel.time >= Seconds(0) && !kernel.kind.empty());
    fuzz::require(!run.busy || run.busy->si() <= run.kernel_time.si() * (1 + 1e-6) + 1e-9);
  });
}
