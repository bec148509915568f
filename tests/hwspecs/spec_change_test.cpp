#include "hwspecs/base/spec_change.h"

#include <gmock/gmock.h>

#include "hwspecs/base/sources.h"
#include "hwspecs/base/spec_reader.h"
#include "tests/hwspecs/message_of.h"

namespace tbdsim {
namespace {

SpecTree changed(const std::string& yaml, std::initializer_list<const char*> changes) {
  SpecTree tree = parse_spec(yaml, "f.yaml");
  SpecChanges all;
  for (const char* text : changes) all.push_back(parse_change(text));
  apply_changes(tree, all);
  return tree;
}

std::string value_of(const SpecTree& tree, const std::string& key) {
  for (const SpecEntry& entry : tree.entries) {
    if (entry.key == key) return entry.value.text;
  }
  return "(none)";
}

TEST(SpecChange, IsASpecAPathAndAValue) {
  const SpecChange change = parse_change("gpu.math.fp32.clock=2 GHz");
  EXPECT_EQ(change.spec, "gpu");
  EXPECT_THAT(change.path, testing::ElementsAre("math", "fp32", "clock"));
  EXPECT_EQ(change.value, "2 GHz");
  EXPECT_EQ(to_text(change), "gpu.math.fp32.clock=2 GHz");
  EXPECT_EQ(parse_change("precision=amp").spec, "");
}

TEST(SpecChange, ReplacesScalesAndAdds) {
  const char* yaml = "a: 10 GB/s\nb: 30\nc: {d: 2 us}\n";
  EXPECT_EQ(value_of(changed(yaml, {"s.a=7GB/s"}), "a"), "7 GB/s");
  EXPECT_EQ(value_of(changed(yaml, {"s.a=+50%"}), "a"), "15 GB/s");
  EXPECT_EQ(value_of(changed(yaml, {"s.a=-20%"}), "a"), "8 GB/s");
  EXPECT_EQ(value_of(changed(yaml, {"s.b=x2", "s.b=+10%"}), "b"), "66");
  EXPECT_EQ(value_of(changed(yaml, {"s.c.d=x3"}).entries[2].value, "d"), "6 us");
  EXPECT_EQ(value_of(changed(yaml, {"s.e.f=1"}).entries[3].value, "f"), "1");
  EXPECT_EQ(changed(yaml, {"s.a=[1, 2]"}).entries[0].value.items.size(), 2u);
}

TEST(SpecChange, ACountTimesAFactorIsRounded) {
  const SpecTree tree = changed("b: 30\n", {"s.b=+4%"});  // 31.2
  EXPECT_EQ(SpecNode(tree.entries[0].value).count(1, 100), 31);
  const SpecTree given = changed("b: 30\n", {"s.b=31.2"});
  EXPECT_THROW((void)SpecNode(given.entries[0].value).count(1, 100), SpecError);
}

TEST(SpecChange, SaysWhatIsWrongWithIt) {
  const auto message = [](const char* text) {
    return test::message_of<SpecError>([&] { (void)changed("speed: 10 GB/s\nname: x\n", {text}); });
  };
  EXPECT_EQ(message("s.sped=+50%"), "s.sped=+50%: the file has no 'sped' to change; did you mean 'speed'?");
  EXPECT_THAT(message("s.name=x2"), testing::HasSubstr("the file has no number there"));
  EXPECT_THAT(message("s.speed.a=1"), testing::HasSubstr("'a' is a key of what is no map"));
  for (const char* text : {"gpu.sm_count", "=5", "gpu.sm_count=", "gpu..a=1", ".a=1"})
    EXPECT_THROW((void)parse_change(text), UsageError) << text;
}

TEST(SpecChange, WhatIsChangedNeedsNoSourceOfTheFile) {
  constexpr std::string_view kKeys[] = {"a", "b"};
  const auto read = [&](const SpecTree& tree) {
    Sources sources;
    SpecNode(tree).map([&](SpecMap& m) {
      for (const char* key : {"a", "b"}) (void)m.find(key);
      sources = read_sources(m, kKeys);
    });
    return sources;
  };
  EXPECT_EQ(read(changed("a: 1\nsources: {a: book}\n", {"s.a=2", "s.b=3"})).at("a"), "what if: s.a=2");
  EXPECT_EQ(read(changed("a: 1\nsources: {a: book}\n", {"s.b=3"})).at("a"), "book");
  EXPECT_THROW((void)read(changed("a: 1\n", {"s.b=3"})), SpecError);
}

}  // namespace
}  // namespace tbdsim
