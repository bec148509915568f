#include "hwspecs/base/suggest.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace tbdsim {
namespace {

TEST(EditDistance, CountsSingleCharacterSteps) {
  EXPECT_EQ(edit_distance("", ""), 0);
  EXPECT_EQ(edit_distance("titanxp", "titanxp"), 0);
  EXPECT_EQ(edit_distance("", "abc"), 3);              // three insertions
  EXPECT_EQ(edit_distance("abc", ""), 3);              // three deletions
  EXPECT_EQ(edit_distance("titanp", "titanxp"), 1);    // insertion
  EXPECT_EQ(edit_distance("titanxpp", "titanxp"), 1);  // deletion
  EXPECT_EQ(edit_distance("titanzp", "titanxp"), 1);   // substitution
  EXPECT_EQ(edit_distance("titnaxp", "titanxp"), 1);   // swap of neighbours
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3);    // k-s, e-i, +g
  EXPECT_EQ(edit_distance("ca", "abc"), 3);            // a swapped pair is not edited again
}

TEST(EditDistance, IsSymmetric) {
  const std::vector<std::string> words = {"", "a", "ab", "ba", "conv2d", "conv", "batch_norm", "bacth_norm"};
  for (const std::string& a : words) {
    for (const std::string& b : words) EXPECT_EQ(edit_distance(a, b), edit_distance(b, a)) << a << " " << b;
  }
}

TEST(DidYouMean, NamesTheNearest) {
  const std::vector<std::string> known = {"p4000", "titanv", "titanxp"};
  EXPECT_EQ(did_you_mean("titanxpp", known), "; did you mean 'titanxp'?");
  EXPECT_EQ(did_you_mean("p400", known), "; did you mean 'p4000'?");
}

TEST(DidYouMean, TakesCapitalsForSmallLetters) {
  EXPECT_EQ(did_you_mean("TitanXP", std::vector<std::string>{"titanxp"}), "; did you mean 'titanxp'?");
}

// A third of the name may be wrong: 2 of 6 characters, not 3; always at least one.
TEST(DidYouMean, IsSilentWhenNothingIsNear) {
  const std::vector<std::string> known = {"abcdef", "x"};
  EXPECT_EQ(did_you_mean("abcdzz", known), "; did you mean 'abcdef'?");
  EXPECT_EQ(did_you_mean("abczzz", known), "");
  EXPECT_EQ(did_you_mean("y", known), "; did you mean 'x'?");
  EXPECT_EQ(did_you_mean("anything", {}), "");
}

TEST(DidYouMean, FirstOfEquallyNear) {
  const std::vector<std::string> known = {"aaaab", "aaaac"};
  EXPECT_EQ(did_you_mean("aaaaa", known), "; did you mean 'aaaab'?");
}

TEST(DidYouMean, LeavesLongNamesAlone) {
  const std::vector<std::string> known = {std::string(64, 'a'), std::string(66, 'a')};
  EXPECT_EQ(did_you_mean(std::string(63, 'a'), known), "; did you mean '" + std::string(64, 'a') + "'?");
  EXPECT_EQ(did_you_mean(std::string(65, 'a'), known), "");
}

TEST(InQuotes, ShowsAtMostFortyCharacters) {
  EXPECT_EQ(in_quotes(""), "''");
  EXPECT_EQ(in_quotes("abc"), "'abc'");
  EXPECT_EQ(in_quotes(std::string(40, 'a')), "'" + std::string(40, 'a') + "'");
  EXPECT_EQ(in_quotes(std::string(41, 'a')), "'" + std::string(40, 'a') + "...'");
}

TEST(InQuotes, ShowsKeysWhole) {
  EXPECT_EQ(key_in_quotes(std::string(90, 'a')), "'" + std::string(90, 'a') + "'");
}

TEST(InQuotes, HidesControlCharacters) { EXPECT_EQ(in_quotes("a\n\tb\x1b[31m\x7f"), "'a??b?[31m?'"); }

// 39 letters and a two-byte character: the cut after 40 bytes would halve it.
TEST(InQuotes, DoesNotHalveACharacter) {
  EXPECT_EQ(in_quotes(std::string(39, 'a') + "\xc3\xa4 and more"), "'" + std::string(39, 'a') + "...'");
}

TEST(Joined, SeparatesWithCommas) {
  EXPECT_EQ(joined({}), "");
  EXPECT_EQ(joined(std::vector<std::string>{"a"}), "a");
  EXPECT_EQ(joined(std::vector<std::string>{"a", "b", "c"}), "a, b, c");
}

}  // namespace
}  // namespace tbdsim
