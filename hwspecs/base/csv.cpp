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

// Skips a UTF-8 byte order mark at the start; other characters are put back.
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

// Runs `read`; a failing device, for which libstdc++ throws, is reported as a UsageError.
template <class Read>
auto guarded(const std::string& file, Read read) {
  try {
    return read();
  } catch (const std::ios_base::failure& failure) {
    throw UsageError(file + ": cannot be read: " + failure.code().message());
  }
}

// Parses one record character by character; quoted fields may contain line breaks.
class RecordParser {
 public:
  enum class Outcome {
    more,        // the record goes on
    blank_line,  // skipped
    record,      // complete
    end,         // of the file, without a record
    unclosed_quote,
    text_after_quote,
    no_utf8,
    long_field,
    many_fields
  };

  // Appends to `fields`. `buffer` is where the characters come from, to look one ahead.
  RecordParser(std::vector<std::string>& fields, std::streambuf& buffer) : fields_(fields), buffer_(buffer) {}

  Outcome take(int c) {
    const Outcome outcome = state_ == State::quoted ? take_quoted(c) : take_plain(c);
    if (outcome != Outcome::more) return outcome;
    return field_.size() > kLongestField ? Outcome::long_field : Outcome::more;
  }

 private:
  enum class State { start, plain, quoted, quote_in_quoted };

  Outcome take_quoted(int c) {
    if (c == std::char_traits<char>::eof()) return Outcome::unclosed_quote;
    if (c == '"')
      state_ = State::quote_in_quoted;
    else
      field_ += static_cast<char>(c);
    return Outcome::more;
  }

  Outcome take_plain(int c) {
    if (c == std::char_traits<char>::eof() || c == '\n') return end_line(c != '\n');
    if (c == ',') return finish_field();
    if (c == '"' && state_ != State::plain) {
      if (state_ == State::quote_in_quoted) field_ += '"';  // a doubled quote
      state_ = State::quoted;
      return Outcome::more;
    }
    if (state_ == State::quote_in_quoted) {
      const bool line_end = c == '\r' && buffer_.sgetc() == '\n';
      return line_end ? Outcome::more : Outcome::text_after_quote;
    }
    field_ += static_cast<char>(c);
    state_ = State::plain;
    return Outcome::more;
  }

  Outcome end_line(bool end_of_file) {
    if (state_ == State::plain && !field_.empty() && field_.back() == '\r') field_.pop_back();
    const bool blank = fields_.empty() && field_.empty() && state_ != State::quote_in_quoted;
    if (blank) {
      state_ = State::start;
      return end_of_file ? Outcome::end : Outcome::blank_line;
    }
    const Outcome outcome = finish_field();
    return outcome == Outcome::more ? Outcome::record : outcome;
  }

  Outcome finish_field() {
    if (!is_utf8(field_)) return Outcome::no_utf8;
    fields_.push_back(std::move(field_));
    field_.clear();
    state_ = State::start;
    return fields_.size() > kMostColumns ? Outcome::many_fields : Outcome::more;
  }

  std::vector<std::string>& fields_;
  std::streambuf& buffer_;
  State state_ = State::start;
  std::string field_;
};

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
  fields.clear();
  row_line_ = line_;
  RecordParser parser(fields, *in_.rdbuf());
  const auto next_character = [&] { return guarded(*file_, [&] { return in_.rdbuf()->sbumpc(); }); };
  for (int c = next_character();; c = next_character()) {
    if (c == '\0') throw SpecError({file_, line_, 1}, "a NUL byte; expected text");
    if (c == '\n') ++line_;
    switch (parser.take(c)) {
      case RecordParser::Outcome::more:
        break;
      case RecordParser::Outcome::blank_line:
        row_line_ = line_;
        break;
      case RecordParser::Outcome::record:
        return true;
      case RecordParser::Outcome::end:
        return false;
      case RecordParser::Outcome::unclosed_quote:
        throw SpecError(row_mark(), "a quoted field is not closed; expected '\"'");
      case RecordParser::Outcome::text_after_quote:
        throw SpecError({file_, line_, 1}, "text after a closing quote; expected ',' or the line's end");
      case RecordParser::Outcome::no_utf8:
        throw SpecError(row_mark(), "bytes that are not UTF-8; expected text in UTF-8");
      case RecordParser::Outcome::long_field:
        throw SpecError(row_mark(), "a field is longer than 1 MiB");
      case RecordParser::Outcome::many_fields:
        throw SpecError(row_mark(), "more than 4096 fields in one row");
    }
  }
}

void append_csv_field(std::string& line, std::string_view field) {
  if (field.find_first_of(",\"\r\n") == std::string_view::npos) {
    line += field;
    return;
  }
  line += '"';
  for (const char c : field) line.append(c == '"' ? 2 : 1, c);
  line += '"';
}

void write_csv_row(std::ostream& out, std::span<const std::string> fields) {
  std::string line;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (i > 0) line += ',';
    append_csv_field(line, fields[i]);
  }
  const bool blank = fields.size() == 1 && fields[0].empty();  // would be skipped on reading
  out << (blank ? "\"\"" : line) << '\n';
}

}  // namespace tbdsim
