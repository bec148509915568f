#include "simulate/framework.h"

#include "graphs/lowering_reader.h"
#include "hwspecs/base/spec_reader.h"

namespace tbdsim {

Framework read_framework(const std::filesystem::path& file) {
  constexpr std::string_view kSourcedKeys[] = {"lowering", "workspace_limit", "context_memory"};
  const SpecTree tree = read_spec_file(file);
  Framework framework;
  framework.name = file.stem().string();
  SpecNode(tree).map([&](SpecMap& m) {
    framework.title = m.at("title").text();
    framework.lowering = read_lowering(m.at("lowering"));
    framework.workspace_limit = m.at("workspace_limit").quantity<Bytes>();
    framework.context_memory = m.at("context_memory").quantity<Bytes>();
    framework.sources = read_sources(m, kSourcedKeys);
  });
  return framework;
}

}  // namespace tbdsim
