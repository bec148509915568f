#include "simulate/validation/known_faults.h"

#include <algorithm>

#include "hwspecs/base/catalog.h"
#include "hwspecs/base/spec_reader.h"

namespace tbdsim {
namespace {

KnownFault read_fault(const SpecNode& node) {
  KnownFault fault;
  node.map([&](SpecMap& m) {
    fault.set = m.at("set").text();
    fault.model = m.at("model").text();
    fault.framework = m.at("framework").text();
    for (const SpecNode& version : m.at("versions").list()) fault.versions.push_back(version.text());
    fault.several = m.at("gpus").one_of({"any", "several"}) == 1;
    fault.why = m.at("why").text();
    (void)m.at("source").text();
  });
  return fault;
}

}  // namespace

bool KnownFault::has(const RunColumns& c, std::span<const std::string> row) const {
  if (!c.set || row[*c.set] != set || row[c.model] != model || row[c.framework] != framework) return false;
  const bool one_machine = row[c.machines].empty() || row[c.machines] == "1";
  if (several && row[c.gpus] == "1" && one_machine) return false;
  return c.version && std::any_of(versions.begin(), versions.end(), [&](const std::string& version) {
           return row[*c.version].find(version) != std::string::npos;
         });
}

std::vector<KnownFault> read_known_faults(const std::filesystem::path& file) {
  const SpecTree tree = read_spec_file(file);
  std::vector<KnownFault> faults;
  SpecNode(tree).map([&](SpecMap& m) {
    for (const SpecNode& node : m.at("faults").list()) faults.push_back(read_fault(node));
  });
  return faults;
}

std::vector<KnownFault> known_faults(const Catalog& catalog) {
  return read_known_faults(catalog.data_dir() / "simulate/validation/benchmarks/known_faults.yaml");
}

}  // namespace tbdsim
