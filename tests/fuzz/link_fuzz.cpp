#include "hwspecs/link_spec.h"
#include "tests/fuzz/memory_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tbdsim;
  const fuzz::MemoryFile file(data, size);
  return fuzz::run([&] {
    const LinkSpec link = read_link(file.path());
    fuzz::require(achievable(link).si() > 0 && achievable(link) <= link.bandwidth && link.latency.si() > 0);
  });
}
