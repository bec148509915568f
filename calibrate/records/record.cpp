#include "calibrate/records/record.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <functional>
#include <map>
#include <ostream>
#include <variant>

#include "hwspecs/base/file.h"
#include "hwspecs/base/required_columns.h"
#include "hwspecs/base/suggest.h"

namespace tbdsim {
namespace {
using Field = std::variant<std::string Record::*, double Record::*, std::int64_t Record::*,
                           std::int64_t RecordShape::*>;

struct Column {
  std::string name;
  Field field;
  bool required = false;
};

constexpr bool kRequired = true;

// The schema, in the order of the file.
std::vector<Column> make_columns() {
  std::vector<Column> columns{{"gpu", &Record::gpu, kRequired},
                              {"generation", &Record::generation, kRequired},
                              {"precision", &Record::precision, kRequired},
                              {"op", &Record::op, kRequired},
                              {"phase", &Record::phase, kRequired}};
  for (const ShapeColumn& size : shape_columns()) columns.push_back({std::string(size.name), size.size});
  const std::vector<Column> rest{{"layout", &Record::layout, kRequired},
                                 {"cache", &Record::cache, kRequired},
                                 {"algorithm", &Record::algorithm},
                                 {"time_s", &Record::time_s, kRequired},
                                 {"spread", &Record::spread},
                                 {"samples", &Record::samples},
                                 {"event_time_s", &Record::event_time_s},
                                 {"timer", &Record::timer},
                                 {"kernel", &Record::kernel},
                                 {"kernels", &Record::kernels},
                                 {"grid", &Record::grid},
                                 {"workspace_bytes", &Record::workspace_bytes},
                                 {"slowdown", &Record::slowdown},
                                 {"sm_clock_hz", &Record::sm_clock_hz},
                                 {"memory_clock_hz", &Record::memory_clock_hz},
                                 {"power_limit_w", &Record::power_limit_w},
                                 {"temperature_c", &Record::temperature_c},
                                 {"driver", &Record::driver},
                                 {"cuda", &Record::cuda},
                                 {"cudnn", &Record::cudnn},
                                 {"cublas", &Record::cublas},
                                 {"source", &Record::source, kRequired}};
  columns.insert(columns.end(), rest.begin(), rest.end());
  return columns;
}

const std::vector<Column>& columns() {
  static const std::vector<Column> kColumns = make_columns();
  return kColumns;
}

std::string shortest(double value) {
  std::array<char, 32> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
  return {text.data(), end};
}

std::string field_text(const Record& record, const Field& field) {
  if (const auto* text = std::get_if<std::string Record::*>(&field)) return record.**text;
  if (const auto* number = std::get_if<double Record::*>(&field)) {
    return record.**number == 0 ? "" : shortest(record.**number);
  }
  if (const auto* count = std::get_if<std::int64_t Record::*>(&field)) {
    return record.**count == 0 ? "" : std::to_string(record.**count);
  }
  const auto size = std::get<std::int64_t RecordShape::*>(field);
  const std::int64_t value = record.shape.*size;
  return value == 0 && !zero_is_a_size(record.shape, size) ? "" : std::to_string(value);
}

template <class Number>
void parse_number(const std::string& text, Number& value, const Column& column, const Mark& where) {
  value = 0;
  if (text.empty()) return;
  const char* const end = text.data() + text.size();
  const auto [rest, failure] = std::from_chars(text.data(), end, value);
  if (failure == std::errc{} && rest == end) return;
  throw SpecError(where, "column '" + column.name + "' holds " + in_quotes(text) + "; expected a number");
}

void parse_field(const std::string& text, Record& record, const Column& column, const Mark& where) {
  if (const auto* string = std::get_if<std::string Record::*>(&column.field)) {
    record.** string = text;
  } else if (const auto* number = std::get_if<double Record::*>(&column.field)) {
    parse_number(text, record.**number, column, where);
  } else if (const auto* count = std::get_if<std::int64_t Record::*>(&column.field)) {
    parse_number(text, record.**count, column, where);
  } else {
    parse_number(text, record.shape.*std::get<std::int64_t RecordShape::*>(column.field), column, where);
  }
}

std::vector<std::size_t> match_columns(const CsvReader& csv, const std::string& file_name) {
  const std::vector<std::string> known = record_columns();
  const Mark header{std::make_shared<const std::string>(file_name), 1, 1};
  std::vector<std::size_t> place;
  for (const std::string& name : csv.columns()) {
    std::size_t i = 0;
    while (i < known.size() && known[i] != name) ++i;
    place.push_back(i);
  }
  std::vector<std::string_view> required;
  for (const Column& column : columns()) {
    if (column.required) required.push_back(column.name);
  }
  require_columns(csv, required);
  for (std::size_t i = 0; i < place.size(); ++i) {
    if (place[i] < known.size()) continue;
    throw SpecError(header,
                    "unknown column " + in_quotes(csv.columns()[i]) + did_you_mean(csv.columns()[i], known));
  }
  return place;
}
}  // namespace

std::vector<std::string> record_columns() {
  std::vector<std::string> names;
  for (const Column& column : columns()) names.push_back(column.name);
  return names;
}

std::vector<std::string> record_fields(const Record& record) {
  std::vector<std::string> fields;
  for (const Column& column : columns()) fields.push_back(field_text(record, column.field));
  return fields;
}

void write_record(std::ostream& out, const Record& record) { write_csv_row(out, record_fields(record)); }

std::string point_key(const Record& record) {
  return record.op + '|' + record.phase + '|' + record.precision + '|' + record.layout + '|' + record.cache +
         '|' + to_text(record.shape);
}

std::string record_key(const Record& record) {
  const bool known_by_name =
      record.op == "kernel" || record.op == "network";  // shape alone does not identify it
  return (known_by_name ? record.kernel + '|' : "") + record.gpu + '|' + record.generation + '|' +
         record.algorithm + '|' + std::to_string(record.workspace_bytes) + '|' + point_key(record);
}

RecordReader::RecordReader(std::istream& in, const std::string& file_name)
    : in_(in), whole_(end_of_whole_lines(in)), csv_(in, file_name), place_(match_columns(csv_, file_name)) {}

bool RecordReader::next(Record& record) {
  if (whole_ >= 0 &&
      static_cast<std::int64_t>(in_.rdbuf()->pubseekoff(0, std::ios::cur, std::ios::in)) >= whole_) {
    cut_last_line_ = true;
    return false;
  }
  if (!csv_.next(fields_)) return false;
  record = Record{};
  for (std::size_t i = 0; i < fields_.size(); ++i) {
    parse_field(fields_[i], record, columns()[place_[i]], csv_.row_mark());
  }
  if (const auto why = implausible(record)) throw SpecError(csv_.row_mark(), *why);
  return true;
}

RecordTable read_records(const std::string& path) {
  std::ifstream in = open_input(path);
  RecordReader reader(in, path);
  RecordTable table;
  for (Record record; reader.next(record);) table.records.push_back(record);
  if (reader.cut_last_line()) table.notes.push_back(path + ": the last line is unfinished and was left out");
  return table;
}

namespace {

// Keeps the fastest of the rows with one key, at the first one's place; an empty key: the row stays.
std::size_t keep_fastest(std::vector<Record>& records,
                         const std::function<std::string(const Record&)>& key_of) {
  std::map<std::string, std::size_t> first;
  std::vector<Record> kept;
  for (Record& record : records) {
    const std::string key = key_of(record);
    const auto [at, is_new] = first.try_emplace(key, kept.size());
    if (is_new || key.empty()) {
      kept.push_back(std::move(record));
    } else if (record.time_s < kept[at->second].time_s) {
      kept[at->second] = std::move(record);
    }
  }
  const std::size_t dropped = records.size() - kept.size();
  records = std::move(kept);
  return dropped;
}

}  // namespace

std::size_t drop_duplicates(std::vector<Record>& records) { return keep_fastest(records, record_key); }

std::size_t keep_fastest_algorithms(std::vector<Record>& records) {
  return keep_fastest(records, [](const Record& r) {
    const bool chosen = r.op == "conv" || r.op == "gemm" || r.op == "batched_gemm";
    return chosen ? r.gpu + '|' + r.generation + '|' + point_key(r) : std::string();
  });
}

std::int64_t end_of_whole_lines(std::istream& in) {
  std::streambuf& buffer = *in.rdbuf();
  const std::int64_t start = buffer.pubseekoff(0, std::ios::cur, std::ios::in);
  const std::int64_t end = buffer.pubseekoff(0, std::ios::end, std::ios::in);
  if (start < 0 || end <= 0) return -1;
  constexpr std::int64_t kLongestLine = std::int64_t{1} << 20U;  // a last line longer than this is no record
  std::string tail(static_cast<std::size_t>(std::min(end, kLongestLine)), ' ');
  const std::int64_t tail_at = end - static_cast<std::int64_t>(tail.size());
  buffer.pubseekoff(tail_at, std::ios::beg, std::ios::in);
  const std::streamsize got = buffer.sgetn(tail.data(), static_cast<std::streamsize>(tail.size()));
  buffer.pubseekoff(start, std::ios::beg, std::ios::in);
  if (got != static_cast<std::streamsize>(tail.size()) || tail.back() == '\n') return -1;
  const std::size_t last_break = tail.rfind('\n');
  if (last_break == std::string::npos) return tail_at == 0 ? 0 : -1;
  return tail_at + static_cast<std::int64_t>(last_break) + 1;
}

}  // namespace tbdsim
