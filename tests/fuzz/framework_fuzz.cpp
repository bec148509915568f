#include "simulate/framework/framework_spec.h"
#include "tests/fuzz/memory_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tbdsim;
  const fuzz::MemoryFile file(data, size);
  return fuzz::run([&] {
    const Framework framework = read_framework(file.path());
    fuzz::require(framework.lowering.parameter_copies >= 0 && framework.workspace_limit.si() > 0);
  });
}
