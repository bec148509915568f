// The contents that a YAML file may have; what its values may be is in spec_reader_test.cpp.
#include <string>

#include <gtest/gtest.h>

#include "hwspecs/base/spec_reader.h"
#include "tests/hwspecs/message_of.h"
#include "tests/support/temp_dir.h"

namespace tbdsim {
namespace {

std::string refusal(const std::string& yaml) {
  return test::message_of<SpecError>([&] { (void)parse_spec(yaml, "f.yaml"); });
}

TEST(ParseSpec, KeepsOrderPositionsAndQuotes) {
  const SpecTree tree = parse_spec("b: 1\na: [x, '2']  # comment\nc:\n  d: \"e\"\n", "f.yaml");
  ASSERT_EQ(tree.kind, SpecTree::Kind::map);
  ASSERT_EQ(tree.entries.size(), 3U);
  EXPECT_EQ(tree.entries[0].key, "b");
  EXPECT_EQ(tree.entries[0].value.text, "1");
  EXPECT_FALSE(tree.entries[0].value.quoted);
  const SpecTree& list = tree.entries[1].value;
  ASSERT_EQ(list.kind, SpecTree::Kind::list);
  EXPECT_EQ(list.items[0].text, "x");
  EXPECT_EQ(list.items[1].text, "2");
  EXPECT_TRUE(list.items[1].quoted);
  EXPECT_EQ(to_text(list.items[1].mark), "f.yaml:2:8");
  EXPECT_EQ(to_text(tree.entries[2].value.entries[0].mark), "f.yaml:4:3");
  EXPECT_EQ(to_text(tree.entries[2].value.entries[0].value.mark), "f.yaml:4:6");
}

TEST(ParseSpec, ReadsTextOfSeveralLines) {
  EXPECT_EQ(parse_spec("a: |\n  x\n  y\n", "f").entries[0].value.text, "x\ny\n");
  EXPECT_EQ(parse_spec("a: >\n  x\n  y\n", "f").entries[0].value.text, "x y\n");
  EXPECT_EQ(parse_spec("a: x\n  y\n", "f").entries[0].value.text, "x y");
}

TEST(ParseSpec, AcceptsByteOrderMarkAndWindowsLineEnds) {
  const SpecTree tree = parse_spec(
      "\xEF\xBB\xBF"
      "a: 1\r\nb: 2\r\n",
      "f");
  EXPECT_EQ(tree.entries[0].key, "a");
  EXPECT_EQ(tree.entries[0].value.text, "1");
  EXPECT_EQ(tree.entries[1].key, "b");
}

TEST(ParseSpec, AcceptsADocumentWithItsMarkers) {
  EXPECT_EQ(parse_spec("---\na: 1\n...\n", "f").entries[0].value.text, "1");
}

TEST(ParseSpec, RefusesWhatPlainYamlDoesNotNeed) {
  EXPECT_EQ(refusal("a: &x 1\n"), "f.yaml:1:4: an anchor ('&name'); expected plain YAML without anchors");
  EXPECT_EQ(refusal("a: &x [1]\n"), "f.yaml:1:4: an anchor ('&name'); expected plain YAML without anchors");
  EXPECT_EQ(refusal("a: !x 1\n"), "f.yaml:1:4: the tag '!x'; expected plain YAML without tags");
  EXPECT_EQ(refusal("a: !x {b: 1}\n"), "f.yaml:1:4: the tag '!x'; expected plain YAML without tags");
  EXPECT_EQ(refusal("a: 1\n---\nb: 1\n"), "f.yaml:2:1: a second document; expected one per file");
  EXPECT_EQ(refusal("? {a: 1}\n: 2\n"), "f.yaml:1:3: a key that is no text; expected 'key: value'");
  EXPECT_EQ(refusal("? [a]\n: 2\n"), "f.yaml:1:3: a key that is no text; expected 'key: value'");
  EXPECT_EQ(refusal("'': 2\n"), "f.yaml:1:1: a key that is no text; expected 'key: value'");
}

TEST(ParseSpec, RefusesDuplicateKeysOfOneMapOnly) {
  EXPECT_EQ(refusal("a: 1\nb: 2\na: 3\n"), "f.yaml:3:1: key 'a' appears twice in one map; expected it once");
  EXPECT_EQ(refusal("a: 1\n'a': 3\n"), "f.yaml:2:1: key 'a' appears twice in one map; expected it once");
  EXPECT_EQ(refusal("x: {a: 1, a: 1}\n"), "f.yaml:1:11: key 'a' appears twice in one map; expected it once");
  EXPECT_NO_THROW((void)parse_spec("a: {a: {a: 1}}\nb: {a: 1}\n", "f"));
}

TEST(ParseSpec, RefusesWhatIsNoText) {
  EXPECT_EQ(refusal("a: \xff\n"), "f.yaml:1:4: bytes that are not UTF-8; expected text in UTF-8");
  EXPECT_EQ(refusal("a: 1\nb: \xc3"), "f.yaml:2:4: bytes that are not UTF-8; expected text in UTF-8");
  EXPECT_EQ(refusal("a: \xc0\xaf\n"),
            "f.yaml:1:4: bytes that are not UTF-8; expected text in UTF-8");  // overlong
  EXPECT_EQ(refusal("a: \xed\xa0\x80\n"),
            "f.yaml:1:4: bytes that are not UTF-8; expected text in UTF-8");  // surrogate
  EXPECT_EQ(refusal("ä: \x07\n"), "f.yaml:1:4: a control character; expected text");
  EXPECT_EQ(refusal(std::string("a: \0", 4)), "f.yaml:1:4: a control character; expected text");
  EXPECT_EQ(refusal("a: 1\rb: 2\r"),
            "f.yaml:1:5: a control character; expected text");  // no line end of YAML's
  EXPECT_EQ(refusal("a:\n\tb: 1\n"), "f.yaml:2:1: a tab in the indentation; expected spaces");
  EXPECT_EQ(refusal("a:\n  \tb: 1\n"), "f.yaml:2:3: a tab in the indentation; expected spaces");
  EXPECT_NO_THROW((void)parse_spec("a:\t1\t# b\n", "f"));
  EXPECT_EQ(refusal("a: \x7f"), "f.yaml:1:4: a control character; expected text");
}

TEST(ParseSpec, RefusesEmptyFiles) {
  for (const char* nothing : {"", "\n\n", "# only a comment\n"}) {
    EXPECT_EQ(refusal(nothing), "f.yaml: the file holds no YAML; expected a map of keys") << nothing;
  }
}

// 64 levels may be open at once: the 65th bracket stands in column 65.
TEST(ParseSpec, RefusesDeepNesting) {
  EXPECT_NO_THROW((void)parse_spec(std::string(64, '[') + std::string(64, ']'), "f"));
  EXPECT_EQ(refusal(std::string(65, '[') + std::string(65, ']')),
            "f.yaml:1:65: nested more than 64 levels deep");
}

TEST(ReadSpecFile, NamesTheFile) {
  const test::TempDir directory;
  const std::filesystem::path file = directory.write("f.yaml", "a: 1\na: 2\n");
  EXPECT_EQ(test::message_of<SpecError>([&] { (void)read_spec_file(file); }),
            file.string() + ":2:1: key 'a' appears twice in one map; expected it once");
  EXPECT_EQ(read_spec_file(directory.write("good.yaml", "a: 1\n")).entries[0].key, "a");
}

// The limit is 1 MiB = 1048576 bytes: "a: " and the rest of the line.
TEST(ReadSpecFile, LimitsTheSize) {
  const test::TempDir directory;
  EXPECT_NO_THROW((void)read_spec_file(directory.write("f.yaml", "a: " + std::string(1048573, 'x'))));
  const std::filesystem::path file = directory.write("large.yaml", "a: " + std::string(1048574, 'x'));
  EXPECT_EQ(test::message_of<UsageError>([&] { (void)read_spec_file(file); }),
            file.string() + ": is larger than 1048576 bytes; expected a file written by hand");
}

// Longer ones could not be read again: YAML ends a key at 1024 characters, and escapes take several.
TEST(SpecParser, LimitsTheLengthOfKeys) {
  EXPECT_EQ(parse_spec(std::string(200, 'k') + ": 1", "a.yaml").entries.size(), 1u);
  EXPECT_THROW((void)parse_spec(std::string(201, 'k') + ": 1", "a.yaml"), SpecError);
}

// A file may begin with a byte order mark. Elsewhere it would vanish when the text is written at a file's
// start; U+FFFF and U+FDD0 would come back as another character.
TEST(SpecParser, RefusesWhatIsNoText) {
  EXPECT_EQ(parse_spec("\xEF\xBB\xBFtext", "a.yaml").text, "text");
  EXPECT_THROW((void)parse_spec("\xEF\xBB\xBF\xEF\xBB\xBFtext", "a.yaml"), SpecError);
  EXPECT_THROW((void)parse_spec("a\xEF\xBF\xBF", "a.yaml"), SpecError);
  EXPECT_THROW((void)parse_spec("a\xEF\xB7\x90", "a.yaml"), SpecError);
  EXPECT_THROW((void)parse_spec("\"\\uFFFF\"", "a.yaml"), SpecError);  // nor by an escape
  EXPECT_EQ(parse_spec("\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80", "a.yaml").text,
            "\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80");  // of 2, 3 and 4 bytes
}

}  // namespace
}  // namespace tbdsim
