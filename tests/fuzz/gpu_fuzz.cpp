#include "hwspecs/gpu_spec.h"
#include "tests/fuzz/memory_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tbdsim;
  static const Catalog catalog = Catalog::from(TBDSIM_SOURCE_DIR);
  const fuzz::MemoryFile file(data, size);
  return fuzz::run([&] {
    const GpuSpec gpu = read_gpu(file.path(), catalog);
    fuzz::require(gpu.sm_count > 0 && gpu.memory_size.si() > 0 && gpu.memory_bandwidth.si() > 0);
    fuzz::require(rate_of(gpu, MathType::fp32).peak.si() > 0);
    fuzz::require(!math_text(gpu).empty());
  });
}
