#include "hwspecs/base/catalog.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hwspecs/base/error.h"
#include "tests/hwspecs/message_of.h"
#include "tests/support/temp_dir.h"

namespace tbdsim {
namespace {
namespace fs = std::filesystem;
using testing::Contains;
using testing::ElementsAre;

// A data directory with the GPUs b and a, and files that are no specs.
class CatalogOfTwo : public testing::Test {
 protected:
  CatalogOfTwo() {
    for (const KindInfo& info : kKinds) fs::create_directories(directory_.path() / info.folder);
    for (const char* file : {"b.yaml", "a.yaml", "notes.txt", "c.yml"}) {
      directory_.write(std::string("hwspecs/gpus/") + file, "");
    }
  }
  [[nodiscard]] Catalog catalog() const { return Catalog::from(directory_.path()); }
  [[nodiscard]] const fs::path& root() const { return directory_.path(); }
  [[nodiscard]] const test::TempDir& directory() const { return directory_; }

 private:
  test::TempDir directory_;
};

TEST_F(CatalogOfTwo, NamesAreSortedStems) {
  EXPECT_THAT(catalog().names(Kind::gpu), ElementsAre("a", "b"));
  EXPECT_THAT(catalog().names(Kind::model), ElementsAre());
}

TEST_F(CatalogOfTwo, ContainsNamesNotPaths) {
  EXPECT_TRUE(catalog().contains(Kind::gpu, "a"));
  EXPECT_FALSE(catalog().contains(Kind::gpu, "c"));
  EXPECT_FALSE(catalog().contains(Kind::cpu, "a"));
  EXPECT_FALSE(catalog().contains(Kind::gpu, ""));
  EXPECT_FALSE(catalog().contains(Kind::gpu, "../gpus/a"));
}

TEST_F(CatalogOfTwo, FindsNames) {
  EXPECT_EQ(catalog().find(Kind::gpu, "a"), root() / "hwspecs/gpus/a.yaml");
}

TEST_F(CatalogOfTwo, LeavesPathsAlone) {
  EXPECT_EQ(catalog().find(Kind::gpu, "mine.yaml"), "mine.yaml");
  EXPECT_EQ(catalog().find(Kind::gpu, "./a"), "./a");
  EXPECT_EQ(catalog().find(Kind::gpu, "/tmp/x/y"), "/tmp/x/y");
}

TEST_F(CatalogOfTwo, SaysWhichCommandTakesSeveral) {
  for (const char* several : {"all", "a,b"})
    EXPECT_EQ(test::message_of<UsageError>([&] { (void)catalog().find(Kind::gpu, several); }),
              "'" + std::string(several) +
                  "' is not one GPU; expected a name ('tbd-sim list gpus' names them), or several as "
                  "'tbd-sim sweep --gpu " +
                  several + "'");
  EXPECT_EQ(test::message_of<UsageError>([&] { (void)catalog().find(Kind::link, "all"); }),
            "unknown link 'all' ('tbd-sim list links' names them; a path to a YAML file works too)");
}

TEST_F(CatalogOfTwo, RefusesUnknownNames) {
  EXPECT_EQ(
      test::message_of<UsageError>([&] { (void)catalog().find(Kind::gpu, "c"); }),
      "unknown GPU 'c'; did you mean 'a'? ('tbd-sim list gpus' names them; a path to a YAML file works too)");
  EXPECT_EQ(test::message_of<UsageError>([&] { (void)catalog().find(Kind::model, "resnet50"); }),
            "unknown model 'resnet50' ('tbd-sim list models' names them; a path to a YAML file works too)");
}

TEST_F(CatalogOfTwo, SaysWhatCanBeDoneForAnotherMakersAccelerator) {
  for (const char* name : {"mi300x", "MI355X", "tpu_v4", "gaudi2", "rx7900xtx"})
    EXPECT_THAT(test::message_of<UsageError>([&] { (void)catalog().find(Kind::gpu, name); }),
                testing::HasSubstr("another accelerator needs a file of its own"))
        << name;
}

TEST_F(CatalogOfTwo, FindsOtherNamesInCapitalsOrNot) {
  directory().write("hwspecs/gpus/a.yaml", "title: NVIDIA Card A\nalso_called: [Alpha 16GB, First]\n");
  directory().write("hwspecs/gpus/b.yaml", "title: Card B\nalso_called: [first]\n");
  for (const char* called : {"a", "A", "card a", "NVIDIA CARD A", "Tesla Card A", "alpha 16gb"}) {
    EXPECT_EQ(catalog().find(Kind::gpu, called), root() / "hwspecs/gpus/a.yaml") << called;
    EXPECT_EQ(catalog().name_of(Kind::gpu, called), "a") << called;
  }
  EXPECT_EQ(catalog().name_of(Kind::gpu, "alpha"), std::nullopt);
  EXPECT_EQ(test::message_of<UsageError>([&] { (void)catalog().find(Kind::gpu, "FIRST"); }),
            "several gpus are called 'FIRST'; expected one of a, b");
}

TEST_F(CatalogOfTwo, ABeginningNamesWhatBeginsSo) {
  directory().write("hwspecs/gpus/wide_card_1.yaml", "");
  directory().write("hwspecs/gpus/wide_card_2.yaml", "");
  EXPECT_THAT(test::message_of<UsageError>([&] { (void)catalog().find(Kind::gpu, "Wide"); }),
              testing::HasSubstr("unknown GPU 'Wide'; expected one of wide_card_1, wide_card_2 ("));
}

TEST_F(CatalogOfTwo, ABeginningOfSeveralIsNoMisspeltShorterName) {
  for (const char* name : {"c10", "c100_large", "c100_small"})
    directory().write("hwspecs/gpus/" + std::string(name) + ".yaml", "");
  EXPECT_THAT(test::message_of<UsageError>([&] { (void)catalog().find(Kind::gpu, "c100"); }),
              testing::HasSubstr("unknown GPU 'c100'; expected one of c100_large, c100_small ("));
  EXPECT_THAT(test::message_of<UsageError>([&] { (void)catalog().find(Kind::gpu, "c100_l"); }),
              testing::HasSubstr("unknown GPU 'c100_l'; did you mean 'c100_large'? ("));
}

TEST_F(CatalogOfTwo, APartNamesTheShortestThatContainsIt) {
  for (const char* name : {"pyflame_1_0", "pyflame"})
    directory().write("simulate/frameworks/" + std::string(name) + ".yaml", "");
  EXPECT_THAT(test::message_of<UsageError>([&] { (void)catalog().find(Kind::framework, "flame"); }),
              testing::HasSubstr("unknown framework 'flame'; did you mean 'pyflame'? ("));
}

TEST_F(CatalogOfTwo, NeedsEveryFolder) {
  fs::remove(root() / "simulate/frameworks");
  EXPECT_EQ(test::message_of<UsageError>([&] { (void)catalog(); }),
            root().string() + ": no data directory of tbd-sim; expected a folder simulate/frameworks in it");
}

TEST(Catalog, HoldsTheProjectsOwnFiles) {
  const Catalog catalog = Catalog::from(TBDSIM_SOURCE_DIR);
  EXPECT_THAT(catalog.names(Kind::gpu), testing::IsSupersetOf({"titanxp", "p4000"}));
  EXPECT_THAT(catalog.names(Kind::cpu), Contains("xeon_e5_2680"));
  EXPECT_THAT(catalog.names(Kind::link), testing::IsSupersetOf({"ethernet_1g", "infiniband_100g", "pcie3"}));
  EXPECT_THAT(catalog.names(Kind::machine), Contains("tbd_p4000"));
  EXPECT_THAT(catalog.names(Kind::model), Contains("resnet50"));
  EXPECT_THAT(catalog.names(Kind::dataset), Contains("imagenet"));
  EXPECT_THAT(catalog.names(Kind::framework), testing::IsSupersetOf({"cntk", "mxnet", "tensorflow"}));
  EXPECT_THAT(catalog.names(Kind::profile), Contains("uncalibrated"));
}

TEST(Kinds, StandInTheOrderOfTheEnumeration) {
  for (const KindInfo& info : kKinds) {
    EXPECT_EQ(&info_of(info.kind), &info);
  }
}

}  // namespace
}  // namespace tbdsim
