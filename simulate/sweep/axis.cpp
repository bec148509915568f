#include "simulate/sweep/axis.h"

#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "hwspecs/base/error.h"
#include "hwspecs/base/number.h"
#include "hwspecs/base/suggest.h"
#include "hwspecs/base/text_list.h"

namespace tbdsim {
namespace {

constexpr double kRounding = 1e-9;  // of a step: the end of a range belongs to it

// "1:200:10" -> its parts.
std::vector<std::string> range_parts(const std::string& text) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == ':') {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

struct Number {
  double value;
  std::string unit;
};

// "100GB/s" and "100 GB/s" -> 100, "GB/s".
std::optional<Number> number_of(const std::string& text) {
  if (const auto plain = parse_number(text)) return Number{*plain, ""};
  const std::size_t end = text.find_first_not_of("0123456789.");
  if (end == 0 || end == std::string::npos) return std::nullopt;
  const auto value = parse_number(text.substr(0, end));
  if (!value) return std::nullopt;
  return Number{*value, text.substr(text[end] == ' ' ? end + 1 : end)};
}

bool is_range(const std::vector<std::string>& parts) {
  return parts.size() > 1 && number_of(parts[0]).has_value();
}

}  // namespace

SweepAxis::SweepAxis(std::string key, const std::string& values) : key_(std::move(key)), text_(values) {
  for (const std::string& item : list_of(values)) {
    if (item.empty())
      throw UsageError(
          fmt::format("{}: a value is missing in {}; expected as 8,16,32 or 1:200", key_, in_quotes(values)));
    const std::vector<std::string> parts = range_parts(item);
    stretches_.push_back(is_range(parts) ? range(parts) : Stretch{.text = item, .unit = {}});
  }
}

SweepAxis::Stretch SweepAxis::range(const std::vector<std::string>& parts) const {
  const auto fail = [&](const std::string& what) -> UsageError {
    return UsageError(
        fmt::format("{}: {} {}; expected as 1:200, 1:200:10, 1:512:x2 or 100GB/s:900GB/s:50GB/s", key_,
                    in_quotes(text_), what));
  };
  if (parts.size() > 3) throw fail("has more than a first value, a last and a step");
  const auto first = number_of(parts[0]);
  const auto last = number_of(parts[1]);
  const bool by_factor = parts.size() == 3 && parts[2].starts_with('x');
  const auto step = parts.size() < 3 ? std::optional<Number>({1, first->unit})
                                     : number_of(by_factor ? parts[2].substr(1) : parts[2]);
  if (!last || !step) throw fail("is no range of numbers");
  if (last->unit != first->unit || (!by_factor && !step->unit.empty() && step->unit != first->unit))
    throw fail("has different units");
  if (parts.size() < 3 && !first->unit.empty()) throw fail("has no step");
  if (last->value < first->value) throw fail("ends before it begins");
  if (step->value <= (by_factor ? 1 : 0) || (by_factor && first->value <= 0))
    throw fail("has a step that goes nowhere");
  const double steps = by_factor ? std::log(last->value / first->value) / std::log(step->value)
                                 : (last->value - first->value) / step->value;
  return {{}, first->value, step->value, std::floor(steps + kRounding) + 1, by_factor, first->unit};
}

double SweepAxis::size() const {
  double sum = 0;
  for (const Stretch& stretch : stretches_) sum += stretch.count;
  return sum;
}

std::vector<std::string> SweepAxis::ends() const {
  std::vector<std::string> values;
  double first = 0;
  for (const Stretch& stretch : stretches_) {
    values.push_back(value(static_cast<std::int64_t>(first)));
    if (stretch.count > 1) values.push_back(value(static_cast<std::int64_t>(first + stretch.count - 1)));
    first += stretch.count;
  }
  return values;
}

std::string SweepAxis::value(std::int64_t i) const {
  auto at = static_cast<double>(i);
  for (const Stretch& stretch : stretches_) {
    if (at >= stretch.count) {
      at -= stretch.count;
      continue;
    }
    if (!stretch.text.empty()) return stretch.text;
    const double number =
        stretch.by_factor ? stretch.first * std::pow(stretch.step, at) : stretch.first + at * stretch.step;
    return fmt::format("{:.12g}{}{}", number, stretch.unit.empty() ? "" : " ", stretch.unit);
  }
  return {};
}

}  // namespace tbdsim
