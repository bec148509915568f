#include "calibrate/measure/plan/plan.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <ostream>

#include "calibrate/measure/plan/op_table.h"
#include "calibrate/records/record.h"
#include "hwspecs/base/csv.h"
#include "hwspecs/base/suggest.h"

namespace tbdsim::measure {
namespace {
const std::vector<std::string> kTextColumns{"op", "precision", "phase", "layout", "cache", "value"};

std::vector<std::string> plan_columns() {
  std::vector<std::string> names = kTextColumns;
  for (const ShapeColumn& column : shape_columns()) names.emplace_back(column.name);
  return names;
}

template <class Number>
Number parse_number(const std::string& text, const std::string& column, const Mark& where,
                    Number when_empty) {
  if (text.empty()) return when_empty;
  Number value{};
  const char* const end = text.data() + text.size();
  const auto [rest, failure] = std::from_chars(text.data(), end, value);
  if (failure != std::errc{} || rest != end || !std::isfinite(static_cast<double>(value))) {
    throw SpecError(where, "column '" + column + "' holds " + in_quotes(text) + "; expected a number");
  }
  return value;
}

void set_field(PlanPoint& point, const std::string& column, const std::string& text, const Mark& where) {
  static const std::map<std::string_view, std::string PlanPoint::*> kTexts{
      {"op", &PlanPoint::op},
      {"precision", &PlanPoint::precision},
      {"phase", &PlanPoint::phase},
      {"layout", &PlanPoint::layout},
      {"cache", &PlanPoint::cache}};
  if (const auto found = kTexts.find(column); found != kTexts.end()) {
    point.*found->second = text;
  } else if (column == "value") {
    point.value = parse_number(text, column, where, 1.0);
  } else {
    for (const ShapeColumn& size : shape_columns()) {
      if (size.name == column) point.shape.*size.size = parse_number<std::int64_t>(text, column, where, 0);
    }
  }
}

}  // namespace

Record record_of(const PlanPoint& point) {
  Record record;
  record.op = point.op;
  record.phase = point.phase;
  record.precision = point.precision;
  record.layout = point.layout;
  record.cache = point.cache;
  record.shape = point.shape;
  return record;
}

std::string to_text(const PlanPoint& point) {
  std::string text = point.op;
  for (const std::string& part :
       {point.phase, point.precision, point.layout, point.cache, to_text(point.shape)}) {
    if (!part.empty()) text += ' ' + part;
  }
  return text;
}

std::string key(const PlanPoint& point) { return point_key(record_of(point)); }

Plan make_plan(std::vector<PlanPoint> points) {
  Plan plan;
  std::map<std::string, std::size_t> seen;
  const auto take = [&](PlanPoint point) {
    if (const auto why = complete(point)) {
      plan.skipped.push_back(point.where + ": " + to_text(point) + ": " + *why + "; skipped");
      return;
    }
    const auto [at, is_new] = seen.try_emplace(key(point), plan.points.size());
    if (is_new) {
      plan.points.push_back(std::move(point));
    } else {
      plan.points[at->second].value = std::max(plan.points[at->second].value, point.value);
    }
  };
  for (PlanPoint& point : points) {
    if (point.cache != "both") {
      take(std::move(point));
      continue;
    }
    const OpSpec* op = find_op(point.op);
    for (const std::string& cache : op == nullptr ? std::vector<std::string>{"cold"} : op->caches) {
      PlanPoint one = point;
      one.cache = cache;
      take(std::move(one));
    }
  }
  return plan;
}

Plan read_plan(std::istream& in, const std::string& file_name) {
  CsvReader csv(in, file_name);
  const std::vector<std::string> known = plan_columns();
  for (const std::string& name : csv.columns()) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    throw SpecError(csv.row_mark(), "unknown column " + in_quotes(name) + did_you_mean(name, known));
  }
  static_cast<void>(csv.column("op"));
  static_cast<void>(csv.column("precision"));
  std::vector<PlanPoint> points;
  for (std::vector<std::string> fields; csv.next(fields);) {
    const Mark where = csv.row_mark();
    PlanPoint point;
    point.where = file_name + ':' + std::to_string(where.line);
    for (std::size_t i = 0; i < fields.size(); ++i) set_field(point, csv.columns()[i], fields[i], where);
    points.push_back(std::move(point));
  }
  return make_plan(std::move(points));
}

void write_plan(std::ostream& out, const std::vector<PlanPoint>& points) {
  write_csv_row(out, plan_columns());
  for (const PlanPoint& point : points) {
    std::string value = std::to_string(point.value);
    std::vector<std::string> fields{point.op, point.precision, point.phase, point.layout, point.cache, value};
    for (const ShapeColumn& column : shape_columns()) {
      const std::int64_t size = point.shape.*column.size;
      fields.push_back(size == 0 ? "" : std::to_string(size));
    }
    write_csv_row(out, fields);
  }
}

}  // namespace tbdsim::measure
