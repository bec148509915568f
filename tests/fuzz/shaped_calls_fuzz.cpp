// Traces of the PyTorch profiler with shapes.
#include <cmath>

#include "simulate/import/shaped_calls.h"
#include "tests/fuzz/memory_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tbdsim;
  const fuzz::MemoryFile file(data, size);
  return fuzz::run([&] {
    for (const ShapedCalls& calls : read_shaped_trace(file.path()).calls) {
      fuzz::require(!calls.kernels.seconds.empty() && calls.kernels.count >= 1);
      for (const double seconds : calls.kernels.seconds)
        fuzz::require(std::isfinite(seconds) && seconds >= 0);
    }
  });
}
