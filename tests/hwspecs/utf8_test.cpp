#include "hwspecs/base/utf8.h"

#include <gtest/gtest.h>

namespace tbdsim {
namespace {

// First and last characters of each length (RFC 3629, section 3).
TEST(Utf8, AcceptsEveryLength) {
  EXPECT_EQ(utf8_length("a"), 1u);
  EXPECT_EQ(utf8_length("\xC2\x80"), 2u);
  EXPECT_EQ(utf8_length("\xDF\xBF"), 2u);
  EXPECT_EQ(utf8_length("\xE0\xA0\x80"), 3u);
  EXPECT_EQ(utf8_length("\xEF\xBF\xBF"), 3u);
  EXPECT_EQ(utf8_length("\xF0\x90\x80\x80"), 4u);
  EXPECT_EQ(utf8_length("\xF4\x8F\xBF\xBF"), 4u);
  EXPECT_TRUE(is_utf8(""));
  EXPECT_TRUE(is_utf8("caf\xC3\xA9"));
}

TEST(Utf8, RefusesWhatIsNone) {
  EXPECT_FALSE(is_utf8("\x80"));              // a continuation without a start
  EXPECT_FALSE(is_utf8("\xC3"));              // cut off
  EXPECT_FALSE(is_utf8("\xC3z"));             // no continuation
  EXPECT_FALSE(is_utf8("\xC1\xBF"));          // overlong
  EXPECT_FALSE(is_utf8("\xE0\x9F\xBF"));      // overlong
  EXPECT_FALSE(is_utf8("\xF0\x8F\xBF\xBF"));  // overlong
  EXPECT_FALSE(is_utf8("\xED\xA0\x80"));      // a surrogate
  EXPECT_FALSE(is_utf8("\xF4\x90\x80\x80"));  // above U+10FFFF
  EXPECT_FALSE(is_utf8("\xF5\x80\x80\x80"));
  EXPECT_FALSE(is_utf8("caf\xE9"));  // Latin-1
}

}  // namespace
}  // namespace tbdsim
