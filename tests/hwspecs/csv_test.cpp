#include "hwspecs/base/csv.h"

#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/hwspecs/message_of.h"

namespace tbdsim {
namespace {
using testing::ElementsAre;
using Row = std::vector<std::string>;

struct Table {
  Row columns;
  std::vector<Row> rows;
  std::vector<int> lines;  // on which each row begins
};

Table read(const std::string& text) {
  std::istringstream in(text);
  CsvReader reader(in, "t.csv");
  Table table{reader.columns(), {}, {}};
  for (Row row; reader.next(row);) {
    table.rows.push_back(row);
    table.lines.push_back(reader.row_mark().line);
  }
  return table;
}

std::string refusal(const std::string& text) {
  return test::message_of<SpecError>([&] { (void)read(text); });
}

TEST(CsvReader, ReadsRows) {
  const Table table = read("a,b\n1,2\n,\n");
  EXPECT_THAT(table.columns, ElementsAre("a", "b"));
  EXPECT_THAT(table.rows, ElementsAre(ElementsAre("1", "2"), ElementsAre("", "")));
}

TEST(CsvReader, LastLineNeedsNoEnd) {
  EXPECT_THAT(read("a,b\n1,2").rows, ElementsAre(ElementsAre("1", "2")));
  EXPECT_THAT(read("a,b\n1,").rows, ElementsAre(ElementsAre("1", "")));
  EXPECT_THAT(read("a\n\"x\"").rows, ElementsAre(ElementsAre("x")));
  EXPECT_THAT(read("a,b").rows, ElementsAre());
}

TEST(CsvReader, AcceptsWindowsLineEnds) {
  const Table table = read("a,b\r\n1,\"2\"\r\n");
  EXPECT_THAT(table.columns, ElementsAre("a", "b"));
  EXPECT_THAT(table.rows, ElementsAre(ElementsAre("1", "2")));
}

TEST(CsvReader, SkipsAByteOrderMark) {
  EXPECT_THAT(read("\xEF\xBB\xBF"
                   "a,b\n")
                  .columns,
              ElementsAre("a", "b"));
}

// The form that spreadsheets write: the mark before a quoted name.
TEST(CsvReader, SkipsAByteOrderMarkBeforeQuotes) {
  EXPECT_THAT(read("\xEF\xBB\xBF\"a\",b\n").columns, ElementsAre("a", "b"));
  EXPECT_THAT([] { (void)read("\xEF\xBBz\n"); },  // no mark
              testing::ThrowsMessage<SpecError>(testing::HasSubstr("bytes that are not UTF-8")));
}

TEST(CsvReader, SkipsEmptyLines) {
  const Table table = read("\n\na,b\n\r\n1,2\n\n\n3,4\n\n");
  EXPECT_THAT(table.rows, ElementsAre(ElementsAre("1", "2"), ElementsAre("3", "4")));
  EXPECT_THAT(table.lines, ElementsAre(5, 8));
}

TEST(CsvReader, ReadsQuotedFields) {
  EXPECT_THAT(read("a,b,c\n\"x,y\",\"he said \"\"no\"\"\",\"\"\n").rows,
              ElementsAre(ElementsAre("x,y", "he said \"no\"", "")));
  EXPECT_THAT(read("a\n\"\"\n").rows, ElementsAre(ElementsAre("")));
  EXPECT_THAT(read("a\nin\"side\n").rows, ElementsAre(ElementsAre("in\"side")));
}

// The second row begins on line 4: the first one's field spans lines 2 and 3.
TEST(CsvReader, CountsLinesThroughQuotedLineBreaks) {
  const Table table = read("a,b\n\"x\ny\",1\nz,2\n");
  EXPECT_THAT(table.rows, ElementsAre(ElementsAre("x\ny", "1"), ElementsAre("z", "2")));
  EXPECT_THAT(table.lines, ElementsAre(2, 4));
}

TEST(CsvReader, RefusesBadTables) {
  EXPECT_EQ(refusal(""), "t.csv: the file is empty; expected a header row with column names");
  EXPECT_EQ(refusal("\n\n"), "t.csv: the file is empty; expected a header row with column names");
  EXPECT_EQ(refusal("a,a\n"), "t.csv:1:1: column 'a' appears twice; expected unique names");
  EXPECT_EQ(refusal("\n\xEF\xBB\xBF"
                    "a\n"),
            "t.csv:2:1: a byte order mark; expected one only where the file begins");
  EXPECT_EQ(refusal("a,,b\n"), "t.csv:1:1: a column has no name; expected one in every column");
  EXPECT_EQ(refusal("a,b\n1,2\n3\n"), "t.csv:3:1: the row has 1 fields; expected 2 as in the header");
  EXPECT_EQ(refusal("a,b\n1,2,3\n"), "t.csv:2:1: the row has 3 fields; expected 2 as in the header");
  EXPECT_EQ(refusal("a,b\n1,\"2\n3,4\n"), "t.csv:2:1: a quoted field is not closed; expected '\"'");
  EXPECT_EQ(refusal("a,b\n\"1\"2,3\n"),
            "t.csv:2:1: text after a closing quote; expected ',' or the line's end");
  EXPECT_EQ(refusal("a,b\n\"1\"\r\"2\",3\n"),
            "t.csv:2:1: text after a closing quote; expected ',' or the line's end");
  EXPECT_EQ(refusal(std::string("a,b\n1,\0\n", 8)), "t.csv:2:1: a NUL byte; expected text");
}

// One field may have 1 MiB = 1048576 bytes, one row 4096 fields.
TEST(CsvReader, RefusesWhatIsNoTable) {
  const std::string longest(1048576, 'x');
  EXPECT_THAT(read("a\n" + longest + "\n").rows, ElementsAre(ElementsAre(longest)));
  EXPECT_EQ(refusal("a\n" + longest + "x\n"), "t.csv:2:1: a field is longer than 1 MiB");
  EXPECT_EQ(refusal("a\n" + std::string(4095, ',') + "\n"),
            "t.csv:2:1: the row has 4096 fields; expected 1 as in the header");
  EXPECT_EQ(refusal("a\n" + std::string(4096, ',') + "\n"), "t.csv:2:1: more than 4096 fields in one row");
}

TEST(CsvReader, FindsColumns) {
  std::istringstream in("gpu,batch\n");
  const CsvReader reader(in, "t.csv");
  EXPECT_EQ(reader.column("batch"), 1U);
  EXPECT_EQ(reader.find_column("gpu"), 0U);
  EXPECT_EQ(reader.find_column("cpu"), std::nullopt);
  EXPECT_EQ(test::message_of<SpecError>([&] { (void)reader.column("bacth"); }),
            "t.csv:1:1: column 'bacth' is missing; did you mean 'batch'?");
}

TEST(WriteCsvRow, QuotesOnlyWhatNeedsIt) {
  std::ostringstream out;
  write_csv_row(out, Row{"plain", "", "a,b", "say \"hi\"", "two\nlines", "cr\r", " space "});
  EXPECT_EQ(out.str(), "plain,,\"a,b\",\"say \"\"hi\"\"\",\"two\nlines\",\"cr\r\", space \n");
}

// An empty line would be skipped on reading.
TEST(WriteCsvRow, KeepsTheOnlyFieldThoughEmpty) {
  std::stringstream text;
  write_csv_row(text, Row{"a"});
  write_csv_row(text, Row{""});
  EXPECT_THAT(read(text.str()).rows, ElementsAre(ElementsAre("")));
}

TEST(WriteCsvRow, IsReadBackUnchanged) {
  const std::vector<Row> rows = {{"", "", ""},       {"\"", "\"\"", "a\"b"},
                                 {",", ",,", "a,b"}, {"\n", "\r\n", "\r"},
                                 {" ", "\t", "ä€😀"}, {"x\r", "\n\"", std::string(1000, '"')}};
  std::stringstream text;
  write_csv_row(text, Row{"a", "b,\n", "\"c\""});
  for (const Row& row : rows) write_csv_row(text, row);
  const Table table = read(text.str());
  EXPECT_THAT(table.columns, ElementsAre("a", "b,\n", "\"c\""));
  EXPECT_EQ(table.rows, rows);
}

}  // namespace
}  // namespace tbdsim
