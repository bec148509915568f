// A table: its first rows are predicted with the project's own catalogue; all of it survives being written
// and read again.
#include <sstream>
#include <vector>

#include "simulate/validation/runs_table.h"
#include "simulate/workload/spec_cache.h"
#include "tests/fuzz/memory_file.h"

namespace {
using namespace tbdsim;
using Row = std::vector<std::string>;

std::vector<Row> read_rows(std::istream& in) {
  CsvReader reader(in, "runs.csv");
  std::vector<Row> rows{reader.columns()};
  for (Row row; reader.next(row);) rows.push_back(row);
  return rows;
}

void round_trip(const std::vector<Row>& rows) {
  std::stringstream text;
  for (const Row& row : rows) write_csv_row(text, row);
  fuzz::require(read_rows(text) == rows);
}

void predict_rows(std::istream& in) {
  constexpr int kPredictedRows = 4;
  static SpecCache specs(Catalog::from(TBDSIM_SOURCE_DIR));
  CsvReader reader(in, "runs.csv");
  const RunColumns columns(reader);
  Row row;
  for (int i = 0; i < kPredictedRows && reader.next(row); ++i) {
    const RowPrediction prediction = predict_row(columns, row, specs, "uncalibrated");
    fuzz::require(!prediction.ok() || prediction.predicted > 0);
    fuzz::require(prediction.interval.low <= prediction.interval.high);
  }
}
}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string table(reinterpret_cast<const char*>(data), size);
  return fuzz::run([&] {
    std::istringstream all(table);
    round_trip(read_rows(all));
    std::istringstream some(table);
    predict_rows(some);
  });
}
