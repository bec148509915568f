// The record: one measured kernel call, one row of CSV. tbd-measure writes it, the importers of published
// tables write it, tbd-calibrate reads it. Standard library only.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "calibrate/records/record_shape.h"
#include "hwspecs/base/csv.h"

namespace tbdsim {

// Each member is a column of that name, in SI units and in this order; `shape` stands for its own columns
// (record_shape.h). Columns marked * must be there; others may be missing as a whole. Empty and 0 mean
// "unknown".
struct Record {
  // The call.
  std::string gpu;         // * as the driver or the catalogue names it (hwspecs/gpu_names.h)
  std::string generation;  // * library and its major version, the key of a fit: cublas13, cudnn9, nccl2, own
  std::string precision;   // * fp32 (never TF32), tf32, fp16, bf16, fp8
  // * gemm, batched_gemm, conv, batch_norm, ... (measure/plan/op_table.cpp). Published tables also have rnn,
  // mul, ..., `network` (several kernels) and `kernel` (without a shape).
  std::string op;
  std::string phase;  // * forward, backward_data, backward_weights, double_backward, update; or empty
  RecordShape shape;  // sizes that do not apply are missing
  // * transposes NN, NT, TN, TT, with + behind where C is added to; tensors NCHW, NHWC; attention: full or
  // causal, with "ordered" behind where gradients are added up in a fixed order; empty where there is none
  std::string layout;
  std::string cache;      // * hot (called back to back), cold (L2 overwritten before each call), unknown
  std::string algorithm;  // the one requested from the library: IMPLICIT_PRECOMP_GEMM, cublas, lt, pinned

  // The result.
  double time_s = 0;         // * median time per call during which the GPU is busy
  double spread = 0;         // 1.4826 * MAD / median of the samples: a robust relative standard deviation
  std::int64_t samples = 0;  // calls timed
  double event_time_s = 0;   // median between CUDA events around the call, with launch gaps; 0: not taken
  // Source of time_s: cupti; host (mean over calls back to back); event (one call on an idle GPU, with a
  // floor for the launch).
  std::string timer;
  std::string kernel;        // name of the longest kernel of the call
  std::int64_t kernels = 0;  // kernels, memsets and copies per call
  std::string grid;          // of the longest kernel, blocks x threads: "30x11x1/128x1x1"
  std::int64_t workspace_bytes = 0;

  // The conditions.
  double slowdown = 0;     // time of a reference GEMM / its shortest so far; 1: clocks held, 1.2: throttled
  double sm_clock_hz = 0;  // while the samples were taken
  double memory_clock_hz = 0;  // the same
  double power_limit_w = 0;
  double temperature_c = 0;
  std::string driver, cuda, cudnn, cublas;  // versions: 580.95, 13.0, 9.19.0, 13.1.0
  std::string source;                       // * program and version, or data set, revision and row

  bool operator==(const Record&) const = default;
};

// The header row.
[[nodiscard]] std::vector<std::string> record_columns();

// The fields of a row; doubles in the shortest form that reads back as the same number.
[[nodiscard]] std::vector<std::string> record_fields(const Record& record);
void write_record(std::ostream& out, const Record& record);

// Identity of a measurement: two rows with equal keys measured the same call in the same way. `point_key`
// leaves out gpu, generation and algorithm: the identity of a point of a plan. `kernel` is part of the key of
// the ops `kernel` and `network` only.
[[nodiscard]] std::string record_key(const Record& record);
[[nodiscard]] std::string point_key(const Record& record);

// The reason why a row cannot be true, or nothing. Reasons: a time that is zero, negative, NaN or outside 10
// ns .. 1000 s, a gemm or convolution faster than 1e17 or slower than 1e10 flop/s above 10 ms (milliseconds
// in a column of seconds), a negative size, one that the op needs and has not, a filter beyond its input, an
// unknown precision, phase or cache state, an empty gpu, generation, op or source.
[[nodiscard]] std::optional<std::string> implausible(const Record& record);

// Streams records from CSV. The constructor and next() throw SpecError with file and line for: a missing *
// column, an unknown or double column, a malformed number, an implausible row. An unfinished last line
// (without a line break: the writer was killed or the disk was full) is skipped, and cut_last_line() returns
// true.
class RecordReader {
 public:
  RecordReader(std::istream& in, const std::string& file_name);

  bool next(Record& record);
  [[nodiscard]] Mark row_mark() const { return csv_.row_mark(); }
  [[nodiscard]] bool cut_last_line() const { return cut_last_line_; }

 private:
  std::istream& in_;
  std::int64_t whole_;  // bytes up to and with the last line break; -1 when the file ends with one
  CsvReader csv_;
  std::vector<std::size_t> place_;  // column of the schema for each CSV column
  std::vector<std::string> fields_;
  bool cut_last_line_ = false;
};

struct RecordTable {
  std::vector<Record> records;
  std::vector<std::string> notes;  // "records.csv: the last line is unfinished and was left out"
};

// All rows of a file; UsageError when it cannot be read, SpecError as above.
[[nodiscard]] RecordTable read_records(const std::string& path);

// Keeps the fastest of the rows with equal keys, at the place of the first. Returns the number of rows
// dropped.
std::size_t drop_duplicates(std::vector<Record>& records);

// The same for GEMMs and convolutions timed with several algorithms of a library: keeps the fastest
// algorithm, which the library is expected to choose.
std::size_t keep_fastest_algorithms(std::vector<Record>& records);

// Offset in bytes just after the last line break of a stream (0: there is none); -1 when the stream ends with
// one, is empty, cannot be searched, or has a last line above 1 MiB.
[[nodiscard]] std::int64_t end_of_whole_lines(std::istream& in);

}  // namespace tbdsim
