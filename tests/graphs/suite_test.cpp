// Benchmark suites: a file names its models, all of which the catalogue has.
#include "graphs/suite.h"

#include <gmock/gmock.h>

#include "graphs/model.h"
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
    for (const SuiteModel& entry : read_suite(catalog.find(Kind::suite, name)).models) {
      SCOPED_TRACE(name + ": " + entry.model + " " + entry.variant);
      const ModelFile file =
          member_of_family(read_model_file(catalog.find(Kind::model, entry.model)), entry.model);
      EXPECT_NO_THROW((void)find_variant(file, entry.variant, ""));
      if (!entry.framework.empty()) {
        EXPECT_TRUE(catalog.contains(Kind::framework, entry.framework));
      }
    }
  }
}

TEST(Suite, TheEightModelsOfTheTbdPaper) {
  EXPECT_EQ(read_suite(Catalog::from(TBDSIM_SOURCE_DIR).find(Kind::suite, "tbd")).models.size(), 8u);
}

TEST(Suite, ModelsInAVariantAndOnAFramework) {
  const test::TempDir directory;
  const Suite suite = read_suite(directory.write(
      "s.yaml",
      "title: T\nmodels: [resnet50, {model: gnmt, variant: a, framework: b}]\nsources: {models: t}\n"));
  EXPECT_EQ(suite.models.at(0).model, "resnet50");
  EXPECT_EQ(suite.models.at(0).variant, "");
  EXPECT_EQ(suite.models.at(1).variant, "a");
  EXPECT_EQ(suite.models.at(1).framework, "b");
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
