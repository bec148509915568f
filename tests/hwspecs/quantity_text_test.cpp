#include "hwspecs/base/quantity_text.h"

#include <cmath>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/hwspecs/message_of.h"

namespace tbdsim {
namespace {
using test::message_of;

struct Case {
  std::string text;
  double si;
  Dimension dimension;
};

constexpr double kKi = 1024;

// Every unit there is: 1 GB = 1e9 B, 1 GiB = 2^30 B, 8 bits are a byte.
const std::vector<Case> kUnits = {
    {"3 B", 3, Bytes::dimension},
    {"3 kB", 3e3, Bytes::dimension},
    {"3 MB", 3e6, Bytes::dimension},
    {"3 GB", 3e9, Bytes::dimension},
    {"3 TB", 3e12, Bytes::dimension},
    {"3 KiB", 3 * kKi, Bytes::dimension},
    {"3 MiB", 3 * kKi* kKi, Bytes::dimension},
    {"3 GiB", 3 * kKi* kKi* kKi, Bytes::dimension},
    {"3 TiB", 3 * kKi* kKi* kKi* kKi, Bytes::dimension},
    {"3 flop", 3, Flops::dimension},
    {"3 kflop", 3e3, Flops::dimension},
    {"3 Mflop", 3e6, Flops::dimension},
    {"3 Gflop", 3e9, Flops::dimension},
    {"3 Tflop", 3e12, Flops::dimension},
    {"3 Pflop", 3e15, Flops::dimension},
    {"3 Eflop", 3e18, Flops::dimension},
    {"3 ns", 3e-9, Seconds::dimension},
    {"3 us", 3e-6, Seconds::dimension},
    {"3 ms", 3e-3, Seconds::dimension},
    {"3 s", 3, Seconds::dimension},
    {"3 Hz", 3, Hertz::dimension},
    {"3 kHz", 3e3, Hertz::dimension},
    {"3 MHz", 3e6, Hertz::dimension},
    {"3 GHz", 3e9, Hertz::dimension},
    {"3 B/s", 3, BytesPerSecond::dimension},
    {"3 kB/s", 3e3, BytesPerSecond::dimension},
    {"3 MB/s", 3e6, BytesPerSecond::dimension},
    {"3 GB/s", 3e9, BytesPerSecond::dimension},
    {"3 TB/s", 3e12, BytesPerSecond::dimension},
    {"8 Mbit/s", 1e6, BytesPerSecond::dimension},
    {"8 Gbit/s", 1e9, BytesPerSecond::dimension},
    {"8 Tbit/s", 1e12, BytesPerSecond::dimension},
    {"3 flop/s", 3, FlopsPerSecond::dimension},
    {"3 kflop/s", 3e3, FlopsPerSecond::dimension},
    {"3 Mflop/s", 3e6, FlopsPerSecond::dimension},
    {"3 Gflop/s", 3e9, FlopsPerSecond::dimension},
    {"3 Tflop/s", 3e12, FlopsPerSecond::dimension},
    {"3 Pflop/s", 3e15, FlopsPerSecond::dimension},
    {"3 MFLOP/s", 3e6, FlopsPerSecond::dimension},
    {"3 GFLOP/s", 3e9, FlopsPerSecond::dimension},
    {"3 TFLOP/s", 3e12, FlopsPerSecond::dimension},
    {"3 PFLOP/s", 3e15, FlopsPerSecond::dimension},
    {"3 mW", 3e-3, Watts::dimension},
    {"3 W", 3, Watts::dimension},
    {"3 kW", 3e3, Watts::dimension},
    {"3 MW", 3e6, Watts::dimension},
    {"3 USD", 3, Dollars::dimension},
};

TEST(ParseSi, KnowsEveryUnit) {
  for (const Case& c : kUnits) EXPECT_DOUBLE_EQ(parse_si(c.text, c.dimension), c.si) << c.text;
}

TEST(ParseSi, KeepsDimensionsApart) {
  for (const Case& c : kUnits) {
    for (const Dimension& other :
         {Bytes::dimension, Flops::dimension, Seconds::dimension, Hertz::dimension, BytesPerSecond::dimension,
          FlopsPerSecond::dimension, Watts::dimension, Dollars::dimension}) {
      if (other == c.dimension) continue;
      EXPECT_THROW((void)parse_si(c.text, other), std::invalid_argument) << c.text;
    }
  }
}

TEST(ParseQuantity, GivesItsType) {
  EXPECT_EQ(parse_quantity<BytesPerSecond>("547.6 GB/s"), BytesPerSecond(547.6 * 1e9));
  EXPECT_EQ(parse_quantity<Seconds>("0 s"), Seconds(0));
}

TEST(ParseSi, SaysWhatWasExpected) {
  const std::string expected = "; expected a frequency with its unit, one of Hz, kHz, MHz, GHz";
  const auto message = [](const char* text) {
    return message_of<std::invalid_argument>([&] { (void)parse_si(text, Hertz::dimension); });
  };
  EXPECT_EQ(message("1500"), "'1500' has no unit" + expected);
  EXPECT_EQ(message("fast"), "'fast' is not a number with a unit" + expected);
  EXPECT_EQ(message(""), "'' is not a number with a unit" + expected);
  EXPECT_EQ(message("MHz"), "'MHz' is not a number with a unit" + expected);
  EXPECT_EQ(message("-1 MHz"), "'-1 MHz' is negative" + expected);
  EXPECT_EQ(message("1 mhz"), "'mhz' is no unit of a frequency" + expected);
  EXPECT_EQ(message("1  MHz"), "' MHz' is no unit of a frequency" + expected);
  EXPECT_EQ(message("1 MHz "), "'MHz ' is no unit of a frequency" + expected);
  EXPECT_EQ(message("1e300 GHz"), "'1e300 GHz' is too large" + expected);  // 1e309 Hz is no finite double
  EXPECT_EQ(message("010 MHz"), "'010 MHz' is not a number with a unit" + expected);
}

TEST(FormatSi, PicksTheUnitThatLeavesOneToThreeDigits) {
  EXPECT_EQ(to_text(Seconds(0.2143)), "214.3 ms");
  EXPECT_EQ(to_text(Bytes(11.2 * kKi * kKi * kKi)), "11.2 GiB");
  EXPECT_EQ(to_text(FlopsPerSecond(12.15e12)), "12.15 Tflop/s");
  EXPECT_EQ(to_text(BytesPerSecond(547.6e9)), "547.6 GB/s");
  EXPECT_EQ(to_text(Hertz(1582e6)), "1.582 GHz");
  EXPECT_EQ(to_text(Watts(250)), "250 W");
  EXPECT_EQ(to_text(Dollars(1199)), "1199 USD");
  EXPECT_EQ(to_text(Seconds(-0.5)), "-500 ms");
}

TEST(FormatSi, ZeroHasTheBaseUnit) {
  EXPECT_EQ(to_text(Seconds(0)), "0 s");
  EXPECT_EQ(to_text(Bytes(0)), "0 B");
}

// 999.94 rounds down to four digits, 999.96 up to 1000, which is 1 of the next unit.
TEST(FormatSi, RoundsIntoTheNextUnit) {
  EXPECT_EQ(to_text(Hertz(999.94e6)), "999.9 MHz");
  EXPECT_EQ(to_text(Hertz(999.96e6)), "1 GHz");
  EXPECT_EQ(to_text(Seconds(999.96e-9)), "1 us");
  EXPECT_EQ(to_text(Flops(999.96e15)), "1 Eflop");
}

TEST(FormatSi, BeyondTheUnitsAtBothEnds) {
  EXPECT_EQ(to_text(Seconds(5e-12)), "0.005 ns");
  EXPECT_EQ(to_text(Flops(1500e18)), "1500 Eflop");
  EXPECT_EQ(to_text(Dollars(30999)), "30999 USD");  // no exponent
  EXPECT_EQ(to_text(Seconds(86400)), "86400 s");
}

TEST(InUnit, DividesByTheUnit) {
  EXPECT_DOUBLE_EQ(in_unit(Seconds(0.25), "ms"), 250);
  EXPECT_DOUBLE_EQ(in_unit(Bytes(3 * kKi * kKi * kKi), "GiB"), 3);
  EXPECT_DOUBLE_EQ(in_unit(BytesPerSecond(1e9), "Gbit/s"), 8);
}

// Four digits are kept, so what is read back differs by at most half a unit of the fourth: 5e-4 of the value.
TEST(FormatSi, IsReadBackToFourDigits) {
  for (const Dimension& dimension :
       {Bytes::dimension, Flops::dimension, Seconds::dimension, Hertz::dimension, BytesPerSecond::dimension,
        FlopsPerSecond::dimension, Watts::dimension, Dollars::dimension}) {
    for (int exponent = -12; exponent <= 20; ++exponent) {
      for (const double mantissa : {1.0, 1.0004, 1.0236, 1.0239, 1.5, 3.14159, 9.9949, 9.9951, 9.9996}) {
        const double si = mantissa * std::pow(10.0, exponent);
        const std::string text = format_si(si, dimension);
        EXPECT_NEAR(parse_si(text, dimension), si, 5e-4 * si) << text;
      }
    }
  }
}

}  // namespace
}  // namespace tbdsim
