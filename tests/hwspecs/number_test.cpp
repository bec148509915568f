#include "hwspecs/base/number.h"

#include <limits>

#include <gtest/gtest.h>

namespace tbdsim {
namespace {

TEST(ParseNumber, ReadsDecimalNotation) {
  EXPECT_EQ(parse_number("0"), 0.0);
  EXPECT_EQ(parse_number("12"), 12.0);
  EXPECT_EQ(parse_number("-12"), -12.0);
  EXPECT_EQ(parse_number("0.5"), 0.5);
  EXPECT_EQ(parse_number("547.6"), 547.6);
  EXPECT_EQ(parse_number("1e3"), 1000.0);
  EXPECT_EQ(parse_number("1.5E+3"), 1500.0);
  EXPECT_EQ(parse_number("25e-2"), 0.25);
  EXPECT_EQ(parse_number("1e0308"), 1e308);  // only the number itself may look octal
}

TEST(ParseNumber, RefusesEverythingElse) {
  for (const char* text : {"",         " ",     "-",      "+1",    "--1", "1 ",    " 1",      "1,5",  "1_000",
                           ".5",       "5.",    "1.e3",   "1e",    "1e+", "e3",    "010",     "-010", "00",
                           "00.5",     "0x10",  "0b1",    "nan",   "NaN", ".nan",  "inf",     "-inf", ".inf",
                           "infinity", "1e999", "-1e999", "1.2.3", "1f",  "1e3e3", "\xd9\xa1"}) {
    EXPECT_EQ(parse_number(text), std::nullopt) << "'" << text << "'";
  }
  EXPECT_EQ(parse_number(std::string_view("1\0", 2)), std::nullopt);
}

TEST(ParseWholeNumber, ReadsAllOf64Bits) {
  EXPECT_EQ(parse_whole_number("0"), 0);
  EXPECT_EQ(parse_whole_number("-7"), -7);
  EXPECT_EQ(parse_whole_number("1000000007"), 1'000'000'007);
  EXPECT_EQ(parse_whole_number("9223372036854775807"), std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(parse_whole_number("-9223372036854775808"), std::numeric_limits<std::int64_t>::min());
}

TEST(ParseWholeNumber, RefusesEverythingElse) {
  for (const char* text : {"", "-", "+1", "1 ", " 1", "010", "00", "1.0", "1e3", "0x10", "1,000", "1'000",
                           "one", "9223372036854775808", "-9223372036854775809", "99999999999999999999"}) {
    EXPECT_EQ(parse_whole_number(text), std::nullopt) << "'" << text << "'";
  }
}

}  // namespace
}  // namespace tbdsim
