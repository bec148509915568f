#include "hwspecs/cpu_spec.h"
#include "tests/fuzz/memory_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tbdsim;
  const fuzz::MemoryFile file(data, size);
  return fuzz::run([&] {
    const CpuSpec cpu = read_cpu(file.path());
    fuzz::require(cpu.core_count > 0 && cpu.max_clock.si() > 0 && cpu.memory_bandwidth.si() > 0);
  });
}
