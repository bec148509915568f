#include "simulate/framework.h"

#include "graphs/lowering_reader.h"
#include "hwspecs/base/spec_reader.h"

namespace tbdsim {
namespace {

constexpr std::string_view kLibraries[] = {"cublas", "cudnn", "torch"};

Libraries read_libraries(const SpecNode& node) {
  Libraries libraries;
  node.map([&](SpecMap& m) {
    for (const std::string_view name : kLibraries) {
      if (const auto version = m.find(name))
        libraries[std::string(name)] = static_cast<int>(version->count(1, 99));
    }
  });
  return libraries;
}

}  // namespace

Framework read_framework(const std::filesystem::path& file) {
  constexpr std::string_view kSourcedKeys[] = {"lowering", "libraries", "workspace_limit", "context_memory"};
  const SpecTree tree = read_spec_file(file);
  Framework framework;
  framework.name = file.stem().string();
  SpecNode(tree).map([&](SpecMap& m) {
    framework.title = m.at("title").text();
    framework.lowering = read_lowering(m.at("lowering"));
    if (const auto libraries = m.find("libraries")) framework.libraries = read_libraries(*libraries);
    framework.workspace_limit = m.at("workspace_limit").quantity<Bytes>();
    framework.context_memory = m.at("context_memory").quantity<Bytes>();
    framework.sources = read_sources(m, kSourcedKeys);
  });
  return framework;
}

}  // namespace tbdsim
