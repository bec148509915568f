#include "hwspecs/cpu_spec.h"

#include "hwspecs/base/spec_reader.h"

namespace tbdsim {

CpuSpec read_cpu(const std::filesystem::path& file, const SpecChanges& changes) {
  constexpr std::string_view kSourcedKeys[] = {"core_count", "max_clock", "memory_bandwidth", "llc_size"};
  const SpecTree tree = read_spec_file(file, changes_of(changes, "cpu", file.stem().string()));
  CpuSpec cpu;
  cpu.file = file;
  cpu.name = file.stem().string();
  SpecNode(tree).map([&](SpecMap& m) {
    cpu.title = m.at("title").text();
    cpu.core_count = static_cast<int>(m.at("core_count").count(1, 100'000));
    cpu.max_clock = m.at("max_clock").quantity<Hertz>();
    cpu.memory_bandwidth = m.at("memory_bandwidth").quantity<BytesPerSecond>();
    cpu.memory_type = m.at("memory_type").text();
    cpu.llc_size = m.at("llc_size").quantity<Bytes>();
    cpu.sources = read_sources(m, kSourcedKeys);
  });
  return cpu;
}

}  // namespace tbdsim
