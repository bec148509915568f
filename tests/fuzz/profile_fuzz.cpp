#include "costmodel/profile.h"
#include "tests/fuzz/memory_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tbdsim;
  const fuzz::MemoryFile file(data, size);
  return fuzz::run([&] {
    const Profile profile = read_profile(file.path());
    for (const Efficiency<double>& kind : profile.kinds) {
      fuzz::require(kind.compute > 0 && kind.bandwidth > 0 && kind.overhead_s > 0);
    }
  });
}
