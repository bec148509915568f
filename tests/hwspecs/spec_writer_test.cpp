#include "hwspecs/base/spec_writer.h"

#include <filesystem>
#include <string>

#include <gtest/gtest.h>

#include "hwspecs/base/catalog.h"
#include "hwspecs/base/spec_reader.h"

namespace tbdsim {
namespace {
namespace fs = std::filesystem;

// Equal but for positions, as the header promises.
void expect_same(const SpecTree& a, const SpecTree& b) {
  ASSERT_EQ(a.kind, b.kind);
  EXPECT_EQ(a.text, b.text);
  EXPECT_EQ(a.quoted, b.quoted) << a.text;
  ASSERT_EQ(a.items.size(), b.items.size());
  ASSERT_EQ(a.entries.size(), b.entries.size());
  for (std::size_t i = 0; i < a.items.size(); ++i) expect_same(a.items[i], b.items[i]);
  for (std::size_t i = 0; i < a.entries.size(); ++i) {
    EXPECT_EQ(a.entries[i].key, b.entries[i].key);
    expect_same(a.entries[i].value, b.entries[i].value);
  }
}

SpecTree round_trip(const SpecTree& tree) { return parse_spec(write_spec(tree), "written.yaml"); }

TEST(WriteSpec, RoundTripsEveryDataFile) {
  int files = 0;
  for (const KindInfo& info : kKinds) {
    for (const fs::directory_entry& file :
         fs::directory_iterator(fs::path(TBDSIM_SOURCE_DIR) / info.folder)) {
      if (file.path().extension() != ".yaml") continue;
      SCOPED_TRACE(file.path());
      const SpecTree tree = read_spec_file(file.path());
      expect_same(round_trip(tree), tree);
      ++files;
    }
  }
  EXPECT_GT(files, 80);  // GPUs alone are 79
}

// In quotes anything is text.
TEST(WriteSpec, RoundTripsAwkwardText) {
  for (const char* text : {"",
                           " ",
                           "a b",
                           " lead",
                           "trail ",
                           "010",
                           "1",
                           "true",
                           "null",
                           "~",
                           "-",
                           "- a",
                           "a: b",
                           "a #b",
                           "#",
                           "&a",
                           "*a",
                           "!a",
                           "@a",
                           "`a",
                           "%a",
                           "|",
                           ">",
                           "?",
                           ":",
                           "[a",
                           "]",
                           "{a",
                           "}",
                           ",",
                           "'",
                           "\"",
                           "\\",
                           "\\n",
                           "two\nlines",
                           "\n",
                           "\t",
                           "$x",
                           "${x}",
                           "---",
                           "--- a",
                           "... a",
                           "...",
                           "<<",
                           "ä€😀",
                           "\xc2\x85",
                           "\xe2\x80\xa8",
                           "\xef\xbb\xbf"
                           "a"}) {
    SCOPED_TRACE(text);
    SpecTree map;
    add_entry(map, "value", spec_text(text));
    expect_same(round_trip(map), map);
    SpecTree list{.kind = SpecTree::Kind::list,
                  .text = "",
                  .items = {spec_text(text), spec_text(text)},
                  .entries = {},
                  .mark = {}};
    expect_same(round_trip(list), list);
    if (std::string_view(text).empty()) continue;  // no key
    SpecTree keyed;
    add_entry(keyed, text, spec_scalar("1"));
    expect_same(round_trip(keyed), keyed);
  }
}

// Numbers and words stand without quotes, or they would read as text.
TEST(WriteSpec, LeavesPlainScalarsPlain) {
  for (const char* text : {"1", "-5", "0.5", "1e-3", "true", "false", "547.6 GB/s", "v1.5", "$width",
                           "${name}_bn1", "b1 m + (1-b1) g; v = b2 v", "a --- b"}) {
    SCOPED_TRACE(text);
    SpecTree map;
    add_entry(map, "value", spec_scalar(text));
    expect_same(round_trip(map), map);
  }
}

TEST(WriteSpec, WritesBlockStyle) {
  SpecTree inner;
  add_entry(inner, "a", spec_scalar("1"));
  SpecTree map;
  add_entry(map, "title", spec_text("x"));
  add_entry(map, "inner", inner);
  EXPECT_EQ(write_spec(map), "title: \"x\"\ninner:\n  a: 1\n");
}

TEST(WriteSpec, RoundTripsEmptyAndNestedContainers) {
  const SpecTree tree = parse_spec("a: []\nb: {}\nc: [[], [1, {d: [2]}], {}]\n", "f");
  expect_same(round_trip(tree), tree);
}

}  // namespace
}  // namespace tbdsim
