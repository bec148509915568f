#include "hwspecs/base/quantity.h"

#include <concepts>
#include <type_traits>

#include <gtest/gtest.h>

namespace tbdsim {
namespace {

template <class A, class B>
concept Addable = requires(A a, B b) {
  a + b;
};
template <class A, class B>
concept Subtractable = requires(A a, B b) {
  a - b;
};
template <class A, class B>
concept Comparable = requires(A a, B b) {
  a < b;
};

// Only equal dimensions add, subtract and compare; a bare number is no quantity.
static_assert(Addable<Bytes, Bytes> && Subtractable<Bytes, Bytes> && Comparable<Bytes, Bytes>);
static_assert(!Addable<Bytes, Flops> && !Subtractable<Bytes, Flops> && !Comparable<Bytes, Flops>);
static_assert(!Addable<Flops, FlopsPerSecond> && !Comparable<Bytes, BytesPerSecond>);
static_assert(!Addable<Bytes, double> && !Addable<double, Seconds> && !Comparable<Seconds, double>);
static_assert(!std::convertible_to<double, Bytes> && !std::convertible_to<Bytes, double>);
static_assert(!std::convertible_to<Bytes, Flops> && !std::constructible_from<Bytes, Flops>);

// Units multiply and cancel as on paper.
static_assert(std::same_as<decltype(Flops{} / FlopsPerSecond{}), Seconds>);
static_assert(std::same_as<decltype(Bytes{} / BytesPerSecond{}), Seconds>);
static_assert(std::same_as<decltype(FlopsPerSecond{} * Seconds{}), Flops>);
static_assert(std::same_as<decltype(Flops{} * Hertz{}), FlopsPerSecond>);
static_assert(std::same_as<decltype(Bytes{} / Seconds{}), BytesPerSecond>);
static_assert(std::same_as<decltype(Seconds{} * Hertz{}), double>);
static_assert(std::same_as<decltype(Bytes{} / Bytes{}), double>);
static_assert(decltype(Flops{} / Bytes{})::dimension == Dimension{.byte = -1, .flop = 1});

// A joule a second is a watt: energy has no name of its own.
static_assert(decltype(Watts{} * Seconds{})::dimension == Dimension{.joule = 1});

// 12 Tflop at 4 Tflop/s take 3 s.
static_assert(Flops(12e12) / FlopsPerSecond(4e12) == Seconds(3));

TEST(Quantity, StartsAtZero) { EXPECT_EQ(Bytes{}.si(), 0.0); }

TEST(Quantity, AddsAndScales) {
  Bytes sum(3);
  sum += Bytes(4);
  sum -= Bytes(2);
  EXPECT_EQ(sum, Bytes(5));  // 3 + 4 - 2
  EXPECT_EQ(Bytes(3) + Bytes(4), Bytes(7));
  EXPECT_EQ(Bytes(3) - Bytes(4), Bytes(-1));
  EXPECT_EQ(2.0 * Bytes(3), Bytes(6));
  EXPECT_EQ(Bytes(3) * 2.0, Bytes(6));
  EXPECT_EQ(Bytes(3) / 2.0, Bytes(1.5));
}

TEST(Quantity, Orders) {
  EXPECT_LT(Seconds(1), Seconds(2));
  EXPECT_GE(Seconds(2), Seconds(2));
  EXPECT_NE(Seconds(1), Seconds(2));
}

// A scalar that counts its own multiplications stands in for an automatic-differentiation type.
struct Counting {
  double value = 0;
  int multiplications = 0;
  friend Counting operator*(const Counting& a, const Counting& b) {
    return {a.value * b.value, a.multiplications + b.multiplications + 1};
  }
};

TEST(Quantity, TakesOtherScalars) {
  const Quantity<Dimension{.second = 1}, Counting> time(Counting{3, 0});
  const Quantity<Dimension{.byte = 1, .second = -1}, Counting> rate(Counting{5, 0});
  const auto data = rate * time;
  static_assert(std::remove_cvref_t<decltype(data)>::dimension == Bytes::dimension);
  EXPECT_EQ(data.si().value, 15.0);  // 5 B/s x 3 s
  EXPECT_EQ(data.si().multiplications, 1);
}

}  // namespace
}  // namespace tbdsim
