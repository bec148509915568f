// Rows of a table of runs, as a test writes them: a good row and what is changed in it.
#pragma once

#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "hwspecs/base/csv.h"

namespace tbdsim::test {

using Row = std::map<std::string, std::string>;

inline const std::vector<std::string>& run_columns() {
  static const std::vector<std::string> columns{
      "id",    "group",   "use",           "split", "gpu",      "framework", "version", "precision",
      "model", "variant", "batch_per_gpu", "gpus",  "machines", "metric",    "value",   "unit"};
  return columns;
}

// ResNet-50 of MXNet, 64 images on one TITAN Xp, judged ("score").
[[nodiscard]] inline Row run_row(const Row& changes = {}) {
  Row row{{"id", "1"},           {"group", "cnn"},         {"use", "time"},         {"split", "score"},
          {"gpu", "titanxp"},    {"framework", "mxnet"},   {"version", "0.11"},     {"precision", "fp32"},
          {"model", "resnet50"}, {"variant", ""},          {"batch_per_gpu", "64"}, {"gpus", "1"},
          {"machines", "1"},     {"metric", "throughput"}, {"value", "200"},        {"unit", "images/s"}};
  for (const auto& [column, value] : changes) row.at(column) = value;
  return row;
}

[[nodiscard]] inline std::string table(const std::vector<Row>& rows) {
  std::ostringstream out;
  write_csv_row(out, run_columns());
  for (const Row& row : rows) {
    std::vector<std::string> fields;
    for (const std::string& column : run_columns()) fields.push_back(row.at(column));
    write_csv_row(out, fields);
  }
  return out.str();
}

// Every row of a CSV text as a map by column.
[[nodiscard]] inline std::vector<Row> rows_of(const std::string& csv) {
  std::istringstream in(csv);
  CsvReader reader(in, "output.csv");
  std::vector<Row> rows;
  for (std::vector<std::string> fields; reader.next(fields);) {
    Row& row = rows.emplace_back();
    for (std::size_t c = 0; c < fields.size(); ++c) row[reader.columns()[c]] = fields[c];
  }
  return rows;
}

}  // namespace tbdsim::test
