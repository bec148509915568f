#include "hwspecs/base/sources.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/hwspecs/message_of.h"

namespace tbdsim {
namespace {
using testing::ElementsAre;
using testing::Pair;

constexpr std::string_view kKeys[] = {"size", "price"};

Sources read(const std::string& yaml) {
  const SpecTree tree = parse_spec(yaml, "f.yaml");
  Sources sources;
  SpecNode(tree).map([&](SpecMap& m) {
    (void)m.find("size");
    (void)m.find("price");
    (void)m.find("title");
    sources = read_sources(m, kKeys);
  });
  return sources;
}

std::string refusal(const std::string& yaml) {
  return test::message_of<SpecError>([&] { (void)read(yaml); });
}

TEST(ReadSources, KeepsWhereEachNumberComesFrom) {
  EXPECT_THAT(read("size: 1\nprice: 2\nsources: {size: a table, price: \"estimate: a guess\"}\n"),
              ElementsAre(Pair("price", "estimate: a guess"), Pair("size", "a table")));
}

TEST(ReadSources, AbsentKeysNeedNone) {
  EXPECT_THAT(read("size: 1\nsources: {size: a table}\n"), ElementsAre(Pair("size", "a table")));
  EXPECT_THAT(read("title: x\nsources: {}\n"), ElementsAre());
}

TEST(ReadSources, RefusesNumbersWithoutOne) {
  EXPECT_EQ(refusal("size: 1\nprice: 2\nsources: {size: a table}\n"),
            "f.yaml:3:10: sources: no source for 'price'; expected where its value comes from");
  EXPECT_EQ(refusal("size: 1\n"), "f.yaml:1:1: key 'sources' is missing");
  EXPECT_EQ(refusal("size: 1\nsources: {size: ''}\n"),
            "f.yaml:2:17: sources.size: has no value; expected text");
  EXPECT_EQ(refusal("size: 1\nsources: a table\n"),
            "f.yaml:2:10: sources: is no map; expected 'key: value' lines");
}

TEST(ReadSources, RefusesSourcesOfNothing) {
  EXPECT_EQ(refusal("size: 1\nsources: {size: a table, price: a table}\n"),
            "f.yaml:2:26: a source for 'price', which this file does not give");
  EXPECT_EQ(refusal("size: 1\nsources: {sise: a table}\n"),
            "f.yaml:2:11: a source for 'sise', which this file does not give; did you mean 'size'?");
  // A title is no number: it needs no source, but may have one.
  EXPECT_EQ(refusal("title: x\nsources: {title: a table}\n"), "(nothing thrown)");
}

}  // namespace
}  // namespace tbdsim
