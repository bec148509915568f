// The accessors of SpecNode and SpecMap, each with what it takes and what it refuses.
#include "hwspecs/base/spec_reader.h"

#include <functional>
#include <string>

#include <gtest/gtest.h>

#include "tests/hwspecs/message_of.h"

namespace tbdsim {
namespace {

// Runs `read` on the value of `v: VALUE`.
template <class Read>
auto value_of(const std::string& value, Read read) {
  const SpecTree tree = parse_spec("v: " + value, "f.yaml");
  SpecMap map{SpecNode(tree)};
  return read(map.at("v"));
}

template <class Read>
std::string refusal(const std::string& value, Read read) {
  return test::message_of<SpecError>([&] { (void)value_of(value, read); });
}

// Runs `read` on a whole file and rejects the keys it did not read.
std::string map_refusal(const std::string& yaml, const std::function<void(SpecMap&)>& read) {
  return test::message_of<SpecError>([&] {
    const SpecTree tree = parse_spec(yaml, "f.yaml");
    SpecNode(tree).map(read);
  });
}

const auto text = [](const SpecNode& n) { return n.text(); };
const auto flag = [](const SpecNode& n) { return n.flag(); };
const auto count = [](const SpecNode& n) { return n.count(); };
const auto one_to_ten = [](const SpecNode& n) { return n.count(1, 10); };
const auto share = [](const SpecNode& n) { return n.number(0, 1); };
const auto clock_of = [](const SpecNode& n) { return n.quantity<Hertz>(); };
const auto layout = [](const SpecNode& n) { return n.one_of({"nchw", "nhwc"}); };

TEST(SpecNodeText, ReadsScalars) {
  EXPECT_EQ(value_of("some text", text), "some text");
  EXPECT_EQ(value_of("'1'", text), "1");
  EXPECT_EQ(value_of("12", text), "12");
}

TEST(SpecNodeText, RefusesEverythingElse) {
  EXPECT_EQ(refusal("''", text), "f.yaml:1:4: v: has no value; expected text");
  EXPECT_EQ(refusal("~", text), "f.yaml:1:4: v: has no value; expected text");
  // The place of a missing value is its key's, not that of the next line.
  EXPECT_EQ(refusal("\nw: 1", text), "f.yaml:1:1: v: has no value; expected text");
  EXPECT_EQ(refusal("[a]", text), "f.yaml:1:4: v: a list; expected text");
  EXPECT_EQ(refusal("{a: 1}", text), "f.yaml:1:4: v: a map of keys; expected text");
}

TEST(SpecNodeFlag, ReadsTrueAndFalse) {
  EXPECT_TRUE(value_of("true", flag));
  EXPECT_FALSE(value_of("false", flag));
}

TEST(SpecNodeFlag, RefusesEverythingElse) {
  for (const std::string word : {"yes", "no", "on", "True", "FALSE", "1"}) {
    EXPECT_EQ(refusal(word, flag), "f.yaml:1:4: v: '" + word + "' is neither true nor false");
  }
  EXPECT_EQ(refusal("'true'", flag), "f.yaml:1:4: v: 'true' is neither true nor false");
  EXPECT_EQ(refusal("[true]", flag), "f.yaml:1:4: v: a list; expected true or false");
}

TEST(SpecNodeCount, ReadsWholeNumbersInItsRange) {
  EXPECT_EQ(value_of("0", count), 0);
  EXPECT_EQ(value_of("9223372036854775807", count), 9223372036854775807);
  EXPECT_EQ(value_of("1", one_to_ten), 1);
  EXPECT_EQ(value_of("10", one_to_ten), 10);
  EXPECT_EQ(value_of("-3", [](const SpecNode& n) { return n.count(-5, 5); }), -3);
}

TEST(SpecNodeCount, RefusesEverythingElse) {
  const std::string range = "; expected a whole number, 1 to 10";
  EXPECT_EQ(refusal("0", one_to_ten), "f.yaml:1:4: v: '0' is out of range" + range);
  EXPECT_EQ(refusal("11", one_to_ten), "f.yaml:1:4: v: '11' is out of range" + range);
  EXPECT_EQ(refusal("-1", one_to_ten), "f.yaml:1:4: v: '-1' is negative" + range);
  EXPECT_EQ(refusal("99999999999999999999", one_to_ten),
            "f.yaml:1:4: v: '99999999999999999999' is out of range" + range);
  EXPECT_EQ(refusal("1.0", one_to_ten), "f.yaml:1:4: v: '1.0' is not a whole number" + range);
  EXPECT_EQ(refusal("1e0", one_to_ten), "f.yaml:1:4: v: '1e0' is not a whole number" + range);
  EXPECT_EQ(refusal("0x1", one_to_ten), "f.yaml:1:4: v: '0x1' is not a whole number" + range);
  EXPECT_EQ(refusal("09", one_to_ten), "f.yaml:1:4: v: '09' is not a whole number" + range);
  EXPECT_EQ(refusal("07", one_to_ten),
            "f.yaml:1:4: v: '07' has a leading zero, which YAML reads as octal" + range);
  EXPECT_EQ(refusal("'5'", one_to_ten), "f.yaml:1:4: v: '5' is text in quotes" + range);
  EXPECT_EQ(refusal("[5]", one_to_ten), "f.yaml:1:4: v: a list" + range);
  EXPECT_EQ(refusal("x", count),
            "f.yaml:1:4: v: 'x' is not a whole number; expected a whole number, 0 or more");
}

TEST(SpecNodeNumber, ReadsNumbersInItsRange) {
  EXPECT_EQ(value_of("0", share), 0.0);
  EXPECT_EQ(value_of("0.75", share), 0.75);
  EXPECT_EQ(value_of("1e-3", share), 0.001);
}

TEST(SpecNodeNumber, RefusesEverythingElse) {
  const std::string range = "; expected a number, 0 to 1";
  EXPECT_EQ(refusal("1.01", share), "f.yaml:1:4: v: '1.01' is out of range" + range);
  EXPECT_EQ(refusal("-0.1", share), "f.yaml:1:4: v: '-0.1' is out of range" + range);
  for (const std::string word : {"nan", ".nan", ".inf", "1e999", "75 %", "01", ".5"}) {
    EXPECT_EQ(refusal(word, share), "f.yaml:1:4: v: '" + word + "' is not a number" + range);
  }
  EXPECT_EQ(refusal("'0.5'", share), "f.yaml:1:4: v: '0.5' is not a number" + range);
}

TEST(SpecNodeQuantity, ReadsPositiveQuantities) {
  EXPECT_EQ(value_of("1582 MHz", clock_of), Hertz(1582e6));
  EXPECT_EQ(value_of("'1582 MHz'", clock_of), Hertz(1582e6));
}

TEST(SpecNodeQuantity, RefusesEverythingElse) {
  EXPECT_EQ(refusal("0 MHz", clock_of), "f.yaml:1:4: v: '0 MHz' is zero; expected more than zero");
  EXPECT_EQ(
      refusal("1582", clock_of),
      "f.yaml:1:4: v: '1582' has no unit; expected a frequency with its unit, one of Hz, kHz, MHz, GHz");
  EXPECT_EQ(refusal("[1 MHz]", clock_of), "f.yaml:1:4: v: a list; expected a number with a unit");
}

TEST(SpecNodeOneOf, GivesTheIndex) {
  EXPECT_EQ(value_of("nchw", layout), 0U);
  EXPECT_EQ(value_of("nhwc", layout), 1U);
}

TEST(SpecNodeOneOf, RefusesEverythingElse) {
  EXPECT_EQ(refusal("nwhc", layout),
            "f.yaml:1:4: v: 'nwhc' is unknown; expected one of nchw, nhwc; did you mean 'nhwc'?");
  EXPECT_EQ(refusal("{a: 1}", layout), "f.yaml:1:4: v: a map of keys; expected one of nchw, nhwc");
}

TEST(SpecNodeList, GivesItemsWithTheirPaths) {
  const auto last_path = [](const SpecNode& n) { return n.list().back().path(); };
  EXPECT_EQ(value_of("[a, b, c]", last_path), "v[2]");
  EXPECT_TRUE(value_of("[]", [](const SpecNode& n) { return n.list(); }).empty());
  EXPECT_EQ(refusal("abc", last_path), "f.yaml:1:4: v: is no list; expected [a, b, ...]");
  EXPECT_EQ(refusal("[5, x]", [](const SpecNode& n) { return n.list()[1].count(); }),
            "f.yaml:1:8: v[1]: 'x' is not a whole number; expected a whole number, 0 or more");
}

TEST(SpecMap, FindsWhatIsThere) {
  const SpecTree tree = parse_spec("a: 1\nb: {c: 2}\n", "f.yaml");
  SpecNode(tree).map([](SpecMap& m) {
    EXPECT_EQ(m.at("a").count(), 1);
    EXPECT_FALSE(m.find("absent").has_value());
    m.at("b").map([](SpecMap& b) { EXPECT_EQ(b.at("c").path(), "b.c"); });
  });
}

TEST(SpecMap, GivesAllOfFreeKeys) {
  const SpecTree tree = parse_spec("x: 1\ny: 2\n", "f.yaml");
  SpecNode(tree).map([](SpecMap& m) {
    const auto all = m.all();
    ASSERT_EQ(all.size(), 2U);
    EXPECT_EQ(all[0].name, "x");
    EXPECT_EQ(all[1].node.count(), 2);
    EXPECT_EQ(to_text(all[1].mark), "f.yaml:2:1");
  });
}

TEST(SpecMap, RefusesUnknownKeys) {
  const auto read = [](SpecMap& m) {
    (void)m.at("title");
    (void)m.find("price");
    (void)m.find("price");  // a key that is asked for twice is named once
  };
  EXPECT_EQ(map_refusal("title: x\nprise: 1\n", read),
            "f.yaml:2:1: unknown key 'prise'; did you mean 'price'?");
  EXPECT_EQ(map_refusal("title: x\nweight: 1\n", read),
            "f.yaml:2:1: unknown key 'weight'; expected one of title, price");
}

TEST(SpecMap, NamesMissingKeys) {
  const auto read = [](SpecMap& m) {
    (void)m.at("title");
    m.at("math").map([](SpecMap& math) { (void)math.at("fp32"); });
  };
  EXPECT_EQ(map_refusal("size: 1\n", read), "f.yaml:1:1: key 'title' is missing");
  EXPECT_EQ(map_refusal("a: 1\ntitel: x\n", read),
            "f.yaml:2:1: key 'title' is missing; is 'titel' meant to be it?");
  EXPECT_EQ(map_refusal("title: x\nmath: {fp64: 1}\n", read),
            "f.yaml:2:8: key 'math.fp32' is missing; is 'fp64' meant to be it?");
  EXPECT_EQ(map_refusal("title: x\nmath: 5\n", read),
            "f.yaml:2:7: math: is no map; expected 'key: value' lines");
  EXPECT_EQ(map_refusal("- title\n", read), "f.yaml:1:1: is no map; expected 'key: value' lines");
}

// A key that is read and present is no misspelling of another.
TEST(SpecMap, DoesNotTakeAKnownKeyForAMisspelling) {
  EXPECT_EQ(map_refusal("width: 1\n",
                        [](SpecMap& m) {
                          (void)m.at("width");
                          (void)m.at("widths");
                        }),
            "f.yaml:1:1: key 'widths' is missing");
}

}  // namespace
}  // namespace tbdsim
