// Importers of published tables of measured kernels. To add one: a file here with one function that turns a
// row into records, a line below and a row in the table of importers.cpp.
//
// Records keep the published times, neither corrected nor filtered but for DeepBench's truncation
// (deepbench.cpp). `gpu` is the catalogue's name, `source` is "owner/repository:file@revision" and the row.
// `timer`:
//
//   cupti  time during which the GPU is busy
//   host   mean over many calls back to back: without launch gaps, unless launching takes longer than the kernel
//   event  one call on an idle GPU, with a floor for the launch: NeuSight 24-97 us, a TensorFlow session 0.1-0.35 ms
//
// Measurements of several kernels have op `network`, kernels without a shape op `kernel`, with their names in
// the column `kernel`. No kernel model can be fitted to them.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "calibrate/importers/table_row.h"
#include "calibrate/records/record.h"

namespace tbdsim {

struct Importer {
  std::string_view source;   // the name in `tbd-calibrate import SOURCE`
  std::string_view columns;  // that are read, "gpu,M,N,K"; a table that has all of them is recognised
  ImportedRow (*import_row)(const TableRow& row);
  std::string_view reads;    // contents of the table
  std::string_view licence;  // as the source states it; "A, B": of each of `from`, in order
  std::string_view from;     // repository and revision
};

// Every table that can be read.
[[nodiscard]] std::span<const Importer> importers();

// Throws UsageError with "did you mean" when no table is of that source; "records" and "" are fine.
void require_source(const std::string& source);

struct ImportSummary {
  std::string source;
  std::int64_t rows = 0, records = 0;
  std::vector<std::string> notes;  // "neusight_gemm.csv: 12 rows left out: ..."
};

// Reads a published table, or a table of this project's own records (source "records"), row by row: memory
// does not grow with the file. With an empty `source` the header decides which table it is. An unfinished
// last line (no line break) is skipped and noted, as in record.h. Repeated rows stay: see drop_duplicates.
// Throws UsageError for an unreadable file and an unknown source, SpecError with file and line for a header
// that is no known table's, a malformed number, a name or shape the source never uses, an implausible record.
ImportSummary import_table(const std::string& path, const std::string& source,
                           const std::function<void(const Record&)>& on_record);

// All records of a file, for fits. Its header decides whether it is a table of own records or a published
// one.
[[nodiscard]] RecordTable read_any_records(const std::string& path);

ImportedRow import_deepbench_gemm(const TableRow& row);
ImportedRow import_deepbench_conv(const TableRow& row);
ImportedRow import_deepbench_rnn(const TableRow& row);
ImportedRow import_neusight_gemm(const TableRow& row);
ImportedRow import_neusight_conv(const TableRow& row);
ImportedRow import_neusight_elementwise(const TableRow& row);
ImportedRow import_aiconfigurator_gemm(const TableRow& row);
ImportedRow import_pipeweave_gemm(const TableRow& row);
ImportedRow import_training_kernels(const TableRow& row);
ImportedRow import_attention_kernels(const TableRow& row);
ImportedRow import_rnn_tables(const TableRow& row);
ImportedRow import_sockeye_kernels(const TableRow& row);
ImportedRow import_torch7_networks(const TableRow& row);
ImportedRow import_tensorflow_conv(const TableRow& row);
ImportedRow import_tensorflow_dense(const TableRow& row);

}  // namespace tbdsim
