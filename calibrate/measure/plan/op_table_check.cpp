// Rules for the points of a plan: what no GPU can measure, and why.
#include <algorithm>
#include <limits>

#include "calibrate/measure/plan/op_table.h"
#include "hwspecs/base/suggest.h"

namespace tbdsim::measure {
namespace {
using Names = std::vector<std::string>;
using Reason = std::optional<std::string>;

bool contains(const Names& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool is_padding(std::string_view column) { return column == "pad_h" || column == "pad_w"; }

Reason choose(std::string& value, const Names& known, const char* what, bool may_default) {
  if (value.empty() && may_default) value = known.front();
  if (contains(known, value)) return std::nullopt;
  if (known == Names{""}) return std::string(what) + ' ' + in_quotes(value) + " given; expected none";
  return std::string(what) + ' ' + in_quotes(value) + did_you_mean(value, known) +
         "; expected one of: " + joined(known);
}

Reason check_sizes(PlanPoint& point, const OpSpec& op) {
  const bool has_filter = contains(op.sizes, "filter_h");
  for (const ShapeColumn& column : shape_columns()) {
    const std::string name(column.name);
    std::int64_t& size = point.shape.*column.size;
    const bool optional = contains(op.sizes_from_one, name);
    if (size == 0 && optional) size = 1;
    if (size < 0) return name + " is negative";
    if (is_padding(name) && has_filter) continue;
    const bool used = optional || contains(op.sizes, name);
    if (used && size == 0) return name + " is missing or 0; expected 1 or more";
    if (!used && size != 0) return name + " is given; " + op.name + " has no such size";
    // cuBLAS and cuDNN take 32-bit sizes.
    const bool bytes_or_elements = name == "bytes" || name == "elements";
    if (!bytes_or_elements && size > std::numeric_limits<std::int32_t>::max())
      return name + " is above 2^31 - 1";
  }
  return std::nullopt;
}

std::string by(std::int64_t a, std::int64_t b) { return std::to_string(a) + 'x' + std::to_string(b); }

Reason check_filter(const PlanPoint& point) {
  const RecordShape& s = point.shape;
  if (s.filter_h == 0) return std::nullopt;
  if (output_height(s) <= 0 || output_width(s) <= 0) {
    return "filter " + by(s.filter_h, s.filter_w) + " is larger than the padded input " +
           by(s.height + 2 * s.pad_h, s.width + 2 * s.pad_w);
  }
  if (s.filters == 0 && (s.pad_h >= s.filter_h || s.pad_w >= s.filter_w)) {
    return "padding " + by(s.pad_h, s.pad_w) + " is not smaller than the window " +
           by(s.filter_h, s.filter_w);
  }
  if (s.groups > 0 && (s.channels % s.groups != 0 || s.filters % s.groups != 0)) {
    return std::to_string(s.groups) + " groups do not divide " + std::to_string(s.channels) +
           " channels and " + std::to_string(s.filters) + " filters";
  }
  return std::nullopt;
}

Reason check_elements(const PlanPoint& point) {
  // cuDNN refuses tensors of 2^31 elements and more; no product of 32-bit sizes below overflows a double.
  const RecordShape& s = point.shape;
  const auto product = [](auto... sizes) {
    return (1.0 * ... * static_cast<double>(std::max<std::int64_t>(sizes, 1)));
  };
  constexpr double kMost = 2147483648.0;
  const std::int64_t out_h = s.filter_h > 0 ? output_height(s) : 1;
  const std::int64_t out_w = s.filter_h > 0 ? output_width(s) : 1;
  const double largest =
      std::max({product(s.batch, s.channels, s.height, s.width), product(s.rows, s.cols),
                product(s.batch, s.filters, out_h, out_w),
                product(s.steps, s.batch, std::max(s.hidden, s.input_size), s.directions)});
  if (largest >= kMost) return "a tensor has 2^31 elements or more";
  if (product(s.m, s.k) >= kMost || product(s.k, s.n) >= kMost || product(s.m, s.n) >= kMost) {
    return "a matrix has 2^31 elements or more";
  }
  if (s.elements >= static_cast<std::int64_t>(kMost)) return "elements is 2^31 or more";
  if (s.directions > 2) return "directions is " + std::to_string(s.directions) + "; expected 1 or 2";
  return std::nullopt;
}
}  // namespace

std::optional<std::string> complete(PlanPoint& point) {
  const OpSpec* op = find_op(point.op);
  if (op == nullptr) {
    Names known;
    for (const OpSpec& spec : op_table()) known.push_back(spec.name);
    return "unknown op " + in_quotes(point.op) + did_you_mean(point.op, known);
  }
  if (auto why = choose(point.precision, op->precisions, "precision", false)) return why;
  if (auto why = choose(point.phase, op->phases, "phase", op->phases.size() == 1)) return why;
  if (auto why = choose(point.layout, op->layouts, "layout", true)) return why;
  if (auto why = choose(point.cache, op->caches, "cache", true)) return why;
  if (auto why = check_sizes(point, *op)) return why;
  if (auto why = check_filter(point)) return why;
  return check_elements(point);
}

}  // namespace tbdsim::measure
