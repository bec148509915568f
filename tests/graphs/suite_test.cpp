// Benchmark suites: a file names its models, all of which the catalogue has.
#include "graphs/suite.h"

#include <gmock/gmock.h>

#include "hwspecs/base/catalog.h"
#include "hwspecs/base/error.h"
#include "tests/support/temp_dir.h"

namespace tbdsim {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(Suite, EveryOneOfTheCatalogueNamesModelsOfIt) {
  const Catalog catalog = Catalog::from(TBDSIM_SOURCE_DIR);
  for (const std::string& name : catalog.names(Kind::suite)) {
    for (const std::string& model : read_suite(catalog.find(Kind::suite, name)).models) {
      EXPECT_TRUE(catalog.contains(Kind::model, model)) << name << ": " << model;
    }
  }
}

TEST(Suite, TheEightModelsOfTheTbdPaper) {
  EXPECT_EQ(read_suite(Catalog::from(TBDSIM_SOURCE_DIR).find(Kind::suite, "tbd")).models.size(), 8u);
}

TEST(SuiteErrors, NameTheKey) {
  const test::TempDir directory;
  const auto read = [&](const std::string& models) {
    (void)read_suite(directory.write("s.yaml", "title: T\nmodels: " + models + "\nsources: {models: t}\n"));
  };
  EXPECT_THAT([&] { read("[]"); },
              ThrowsMessage<SpecError>(HasSubstr("models: names no model; expected at least one")));
  EXPECT_THAT([&] { read("resnet50"); }, ThrowsMessage<SpecError>(HasSubstr("s.yaml:2:9: models")));
}

}  // namespace
}  // namespace tbdsim
