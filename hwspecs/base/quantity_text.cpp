#include "hwspecs/base/quantity_text.h"

#include <cassert>
#include <cmath>
#include <span>
#include <stdexcept>

#include <fmt/format.h>

#include "hwspecs/base/number.h"
#include "hwspecs/base/suggest.h"

namespace tbdsim {
namespace {

struct Unit {
  std::string_view name;
  double si;          // SI base units in one of this unit
  bool print = true;  // also used when formatting; printed units ascend
};

constexpr double kKi = 1024.0;
constexpr double kBit = 1.0 / 8.0;

constexpr Unit kBytes[] = {{"B", 1},
                           {"KiB", kKi},
                           {"MiB", kKi* kKi},
                           {"GiB", kKi* kKi* kKi},
                           {"TiB", kKi* kKi* kKi* kKi},
                           {"kB", 1e3, false},
                           {"MB", 1e6, false},
                           {"GB", 1e9, false},
                           {"TB", 1e12, false}};
constexpr Unit kFlops[] = {{"flop", 1},     {"kflop", 1e3},  {"Mflop", 1e6}, {"Gflop", 1e9},
                           {"Tflop", 1e12}, {"Pflop", 1e15}, {"Eflop", 1e18}};
constexpr Unit kSeconds[] = {{"ns", 1e-9}, {"us", 1e-6},       {"ms", 1e-3},
                             {"s", 1},     {"min", 60, false}, {"h", 3600, false}};
constexpr Unit kHertz[] = {{"Hz", 1}, {"kHz", 1e3}, {"MHz", 1e6}, {"GHz", 1e9}};
constexpr Unit kBytesPerSecond[] = {{"B/s", 1},
                                    {"kB/s", 1e3},
                                    {"MB/s", 1e6},
                                    {"GB/s", 1e9},
                                    {"TB/s", 1e12},
                                    {"Mbit/s", 1e6 * kBit, false},
                                    {"Gbit/s", 1e9 * kBit, false},
                                    {"Tbit/s", 1e12 * kBit, false}};
constexpr Unit kFlopsPerSecond[] = {
    {"flop/s", 1},           {"kflop/s", 1e3},        {"Mflop/s", 1e6},
    {"Gflop/s", 1e9},        {"Tflop/s", 1e12},       {"Pflop/s", 1e15},
    {"MFLOP/s", 1e6, false}, {"GFLOP/s", 1e9, false}, {"TFLOP/s", 1e12, false},
    {"PFLOP/s", 1e15, false}};
constexpr Unit kWatts[] = {{"mW", 1e-3}, {"W", 1}, {"kW", 1e3}, {"MW", 1e6}};
constexpr Unit kJoules[] = {{"J", 1}, {"kJ", 1e3}, {"kWh", 3.6e6}, {"MWh", 3.6e9}, {"GWh", 3.6e12}};
constexpr Unit kDollars[] = {{"USD", 1}};
constexpr Unit kDollarsPerSecond[] = {{"USD/h", 1.0 / 3600}};

struct Family {
  Dimension dimension;
  std::string_view what;
  std::span<const Unit> units;
};

constexpr Family kFamilies[] = {{Bytes::dimension, "an amount of data", kBytes},
                                {Flops::dimension, "an amount of work", kFlops},
                                {Seconds::dimension, "a time", kSeconds},
                                {Hertz::dimension, "a frequency", kHertz},
                                {BytesPerSecond::dimension, "a bandwidth", kBytesPerSecond},
                                {FlopsPerSecond::dimension, "a compute rate", kFlopsPerSecond},
                                {Watts::dimension, "a power", kWatts},
                                {Joules::dimension, "an energy", kJoules},
                                {Dollars::dimension, "a price", kDollars},
                                {DollarsPerSecond::dimension, "a price by the hour", kDollarsPerSecond}};

const Family& family_of(const Dimension& dimension) {
  for (const Family& family : kFamilies) {
    if (family.dimension == dimension) return family;
  }
  assert(false && "a dimension without units");
  return kFamilies[0];
}

std::string expected(const Family& family) {
  std::string names;
  for (const Unit& unit : family.units) names += (names.empty() ? "" : ", ") + std::string(unit.name);
  return fmt::format("expected {} with its unit, one of {}", family.what, names);
}

}  // namespace

double parse_si(std::string_view text, const Dimension& dimension) {
  const Family& family = family_of(dimension);
  const std::size_t space = text.find(' ');
  const std::string_view number_text = text.substr(0, space);
  const auto number = parse_number(number_text);
  if (!number)
    throw std::invalid_argument(in_quotes(text) + " is not a number with a unit; " + expected(family));
  if (space == std::string_view::npos)
    throw std::invalid_argument(in_quotes(text) + " has no unit; " + expected(family));
  if (*number < 0) throw std::invalid_argument(in_quotes(text) + " is negative; " + expected(family));
  const std::string_view unit_name = text.substr(space + 1);
  for (const Unit& unit : family.units) {
    if (unit.name != unit_name) continue;
    const double si = *number * unit.si;
    if (!std::isfinite(si))
      throw std::invalid_argument(in_quotes(text) + " is too large; " + expected(family));
    return si;
  }
  throw std::invalid_argument(in_quotes(unit_name) + " is no unit of " + std::string(family.what) + "; " +
                              expected(family));
}

double in_unit(double si, const Dimension& dimension, std::string_view unit_name) {
  for (const Unit& unit : family_of(dimension).units) {
    if (unit.name == unit_name) return si / unit.si;
  }
  assert(false && "a unit of another dimension");
  return si;
}

std::string format_si(double si, const Dimension& dimension) {
  const Family& family = family_of(dimension);
  const Unit* chosen = nullptr;
  for (const Unit& unit : family.units) {
    // 999.95 would round to "1000": half a unit of the fourth digit belongs to the next prefix.
    const bool reached = std::abs(si) >= unit.si * 0.99995;
    if (unit.print && (chosen == nullptr || reached)) chosen = &unit;
  }
  if (si == 0) {
    for (const Unit& unit : family.units) {
      if (unit.si == 1) chosen = &unit;
    }
  }
  const double number = si / chosen->si;
  const bool in_full = std::abs(number) >= 9999.5 && std::abs(number) < 1e9;  // beyond the units: no exponent
  return in_full ? fmt::format("{:.0f} {}", number, chosen->name)
                 : fmt::format("{:.4g} {}", number, chosen->name);
}

}  // namespace tbdsim
