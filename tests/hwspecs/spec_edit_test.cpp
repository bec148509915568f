#include "hwspecs/base/spec_edit.h"

#include <gmock/gmock.h>

#include "hwspecs/base/spec_reader.h"
#include "hwspecs/base/spec_writer.h"
#include "tests/hwspecs/message_of.h"

namespace tbdsim {
namespace {
using Path = std::vector<std::string>;

std::string edit(const std::string& yaml, const Path& path, const SpecTree& scalar) {
  return set_spec_value(yaml, "f.yaml", path, scalar);
}

TEST(SpecEdit, ReplacesAPlainValueAndKeepsComments) {
  EXPECT_EQ(edit("# first\na:\n  b: 8 us   # why\n  c: 1\n", {"a", "b"}, spec_scalar("12.5 us")),
            "# first\na:\n  b: 12.5 us   # why\n  c: 1\n");
}

TEST(SpecEdit, ReplacesQuotedValuesWithWhatTheyEscape) {
  EXPECT_EQ(edit("a: \"x \\\" # y\"  # z\n", {"a"}, spec_text("new")), "a: \"new\"  # z\n");
  EXPECT_EQ(edit("a: 'it''s'  # z\n", {"a"}, spec_text("new")), "a: \"new\"  # z\n");
  EXPECT_EQ(edit("a: \"over\n  two lines\"\nb: 1\n", {"a"}, spec_text("one")), "a: \"one\"\nb: 1\n");
}

TEST(SpecEdit, WritesQuotesThatAreReadBack) {
  const std::string text = "says \"no\" \\ 'yes' # not a comment: {1}";
  const SpecTree tree = parse_spec(edit("a: 1\n", {"a"}, spec_text(text)), "f.yaml");
  EXPECT_EQ(tree.entries[0].value.text, text);
}

TEST(SpecEdit, EditsFlowMaps) {
  EXPECT_EQ(edit("a: {b: 8 us, c: 1}\n", {"a", "b"}, spec_scalar("9 us")), "a: {b: 9 us, c: 1}\n");
  EXPECT_EQ(edit("a: {b: 1}\n", {"a", "c"}, spec_scalar("2")), "a: {c: 2, b: 1}\n");
  EXPECT_EQ(edit("a: {}\n", {"a", "c", "d"}, spec_scalar("2")), "a: {c: {d: 2}}\n");
}

TEST(SpecEdit, AddsKeysBeforeTheSources) {
  EXPECT_EQ(edit("a:\n  b: 1\n  sources:\n    b: t\n", {"a", "c"}, spec_scalar("2")),
            "a:\n  b: 1\n  c: 2\n  sources:\n    b: t\n");
  EXPECT_EQ(edit("a: 1\nsources: {a: t}\n", {"f", "g"}, spec_scalar("2")),
            "a: 1\nf:\n  g: 2\nsources: {a: t}\n");
}

TEST(SpecEdit, AddsKeysWithoutSources) {
  EXPECT_EQ(edit("a:\n    b: 1\n", {"a", "c"}, spec_scalar("2")), "a:\n    c: 2\n    b: 1\n");
  EXPECT_EQ(edit("a: 1", {"b", "c"}, spec_scalar("2")), "a: 1\nb:\n  c: 2\n");
}

TEST(SpecEdit, RefusesWhatIsInTheWay) {
  EXPECT_EQ(test::message_of<SpecError>([] {
              (void)edit("a: 1\n", {"a", "b"}, spec_scalar("2"));
            }),
            "f.yaml:1:4: expected a map of keys");
  EXPECT_EQ(test::message_of<SpecError>([] { (void)edit("a:\n  b: 1\n", {"a"}, spec_scalar("2")); }),
            "f.yaml:2:3: expected a single value");
  EXPECT_EQ(
      test::message_of<SpecError>([] { (void)edit("a: over\n  two lines\n", {"a"}, spec_scalar("2")); }),
      "f.yaml:1:4: a cannot be replaced in place; expected its value in one line");
}

}  // namespace
}  // namespace tbdsim
