#include "hwspecs/base/csv.h"

#include <algorithm>
#include <istream>
#include <ostream>

#include "hwspecs/base/suggest.h"
#include "hwspecs/base/utf8.h"

namespace tbdsim {
namespace {
constexpr std::size_t kLongestField = std::size_t{1} << 20U;  // bytes; a guard against files that are no CSV
constexpr std::size_t kMostColumns = 4096;

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

// A mark stands before the first field, quoted or not. Puts back what is none.
bool skip_byte_order_mark(std::streambuf& buffer) {
  std::size_t matched = 0;
  while (matched < kByteOrderMark.size() &&
         buffer.sgetc() == std::char_traits<char>::to_int_type(kByteOrderMark[matched])) {
    buffer.sbumpc();
    ++matched;
  }
  if (matched == kByteOrderMark.size()) return true;
  for (; matched > 0; --matched) buffer.sungetc();
  return false;
}

// Runs `read`; a device that fails to deliver (libstdc++ throws) is the user's problem, not a bug.
template <class Read>
auto guarded(const std::string& file, Read read) {
  try {
    return read();
  } catch (const std::ios_base::failure& failure) {
    throw UsageError(file + ": cannot be read: " + failure.code().message());
  }
}
}  // namespace

CsvReader::CsvReader(std::istream& in, std::string file_name)
    : in_(in), file_(std::make_shared<const std::string>(std::move(file_name))) {
  guarded(*file_, [&] { return skip_byte_order_mark(*in_.rdbuf()); });
  if (!read_record(columns_)) {
    throw SpecError({file_, 0, 0}, "the file is empty; expected a header row with column names");
  }
  if (columns_[0].starts_with(kByteOrderMark)) {
    throw SpecError(row_mark(), "a byte order mark; expected one only where the file begins");
  }
  for (auto name = columns_.begin(); name != columns_.end(); ++name) {
    if (name->empty()) throw SpecError(row_mark(), "a column has no name; expected one in every column");
    if (std::find(columns_.begin(), name, *name) != name) {
      throw SpecError(row_mark(), "column " + in_quotes(*name) + " appears twice; expected unique names");
    }
  }
}

std::optional<std::size_t> CsvReader::find_column(std::string_view name) const {
  const auto found = std::find(columns_.begin(), columns_.end(), name);
  if (found == columns_.end()) return std::nullopt;
  return static_cast<std::size_t>(found - columns_.begin());
}

std::size_t CsvReader::column(std::string_view name) const {
  if (const auto found = find_column(name)) return *found;
  throw SpecError({file_, 1, 1}, "column " + in_quotes(name) + " is missing" + did_you_mean(name, columns_));
}

bool CsvReader::next(std::vector<std::string>& fields) {
  if (!read_record(fields)) return false;
  if (fields.size() != columns_.size()) {
    throw SpecError(row_mark(), "the row has " + std::to_string(fields.size()) + " fields; expected " +
                                    std::to_string(columns_.size()) + " as in the header");
  }
  return true;
}

bool CsvReader::read_record(std::vector<std::string>& fields) {
  // An explicit state machine over characters, because quoted fields may contain line breaks.
  enum class State { start, plain, quoted, quote_in_quoted };
  State state = State::start;
  fields.clear();
  std::string field;
  std::streambuf& buffer = *in_.rdbuf();
  row_line_ = line_;
  const auto finish_field = [&] {
    if (!is_utf8(field)) throw SpecError(row_mark(), "bytes that are not UTF-8; expected text in UTF-8");
    fields.push_back(std::move(field));
    field.clear();
    state = State::start;
    if (fields.size() > kMostColumns) throw SpecError(row_mark(), "more than 4096 fields in one row");
  };
  const auto next_character = [&] { return guarded(*file_, [&] { return buffer.sbumpc(); }); };
  for (int c = next_character();; c = next_character()) {
    const bool end = c == std::char_traits<char>::eof();
    if (end && state == State::quoted)
      throw SpecError(row_mark(), "a quoted field is not closed; expected '\"'");
    if (c == '\0') throw SpecError({file_, line_, 1}, "a NUL byte; expected text");
    if (c == '\n') ++line_;
    if (state == State::quoted) {
      if (c == '"') {
        state = State::quote_in_quoted;
      } else {
        field += static_cast<char>(c);
      }
    } else if (end || c == '\n') {
      if (state == State::plain && !field.empty() && field.back() == '\r') field.pop_back();
      const bool blank = fields.empty() && field.empty() && state != State::quote_in_quoted;
      if (!blank) {
        finish_field();
        return true;
      }
      if (end) return false;
      state = State::start;
      row_line_ = line_;
    } else if (c == ',') {
      finish_field();
    } else if (c == '"' && state != State::plain) {
      if (state == State::quote_in_quoted) field += '"';  // a doubled quote
      state = State::quoted;
    } else if (state == State::quote_in_quoted) {
      if (c != '\r' || buffer.sgetc() != '\n')
        throw SpecError({file_, line_, 1}, "text after a closing quote; expected ',' or the line's end");
    } else {
      field += static_cast<char>(c);
      state = State::plain;
    }
    if (field.size() > kLongestField) throw SpecError(row_mark(), "a field is longer than 1 MiB");
  }
}

void write_csv_row(std::ostream& out, std::span<const std::string> fields) {
  bool first = true;
  for (const std::string& field : fields) {
    if (!first) out << ',';
    first = false;
    const bool blank_line = field.empty() && fields.size() == 1;  // would be skipped on reading
    if (!blank_line && field.find_first_of(",\"\r\n") == std::string::npos) {
      out << field;
      continue;
    }
    out << '"';
    for (const char c : field) out << (c == '"' ? "\"\"" : std::string(1, c));
    out << '"';
  }
  out << '\n';
}

}  // namespace tbdsim
