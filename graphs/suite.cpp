#include "graphs/suite.h"

#include "hwspecs/base/spec_reader.h"

namespace tbdsim {
namespace {

SuiteModel read_model(const SpecNode& node) {
  SuiteModel model;
  if (node.is_scalar()) {
    model.model = node.text();
    return model;
  }
  node.map([&](SpecMap& m) {
    model.model = m.at("model").text();
    if (const auto variant = m.find("variant")) model.variant = variant->text();
    if (const auto framework = m.find("framework")) model.framework = framework->text();
  });
  return model;
}

}  // namespace

Suite read_suite(const std::filesystem::path& file) {
  constexpr std::string_view kSourcedKeys[] = {"models"};
  const SpecTree tree = read_spec_file(file);
  Suite suite;
  suite.name = file.stem().string();
  SpecNode(tree).map([&](SpecMap& m) {
    suite.title = m.at("title").text();
    const SpecNode models = m.at("models");
    for (const SpecNode& model : models.list()) suite.models.push_back(read_model(model));
    if (suite.models.empty()) models.fail("names no model; expected at least one");
    suite.sources = read_sources(m, kSourcedKeys);
  });
  return suite;
}

}  // namespace tbdsim
