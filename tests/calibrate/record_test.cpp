#include "calibrate/records/record.h"

#include <cmath>
#include <fstream>
#include <sstream>

#include <gmock/gmock.h>

namespace tbdsim {
namespace {
using testing::HasSubstr;
using testing::Optional;

Record gemm() {
  Record r;
  r.gpu = "NVIDIA TITAN Xp";
  r.generation = "cublas13";
  r.precision = "fp32";
  r.op = "gemm";
  r.shape = {.m = 1760, .n = 16, .k = 1760};
  r.layout = "NN";
  r.cache = "cold";
  r.algorithm = "cublas";
  r.time_s = 5.0e-5;
  r.spread = 0.0123;
  r.samples = 15;
  r.kernel = "void gemm<float, 128>(int, \"x\")";  // a comma and quotes, as kernel names have
  r.sm_clock_hz = 1.582e9;
  r.source = "tbd-measure 0.1.0";
  return r;
}

Record conv() {
  Record r = gemm();
  r.op = "conv";
  r.phase = "backward_weights";
  r.generation = "cudnn9";
  r.layout = "NCHW";
  r.shape = {.batch = 16,
             .channels = 64,
             .height = 56,
             .width = 56,
             .filters = 64,
             .filter_h = 1,
             .filter_w = 1,
             .stride_h = 1,
             .stride_w = 1,
             .pad_h = 0,
             .pad_w = 0,
             .dilation_h = 1,
             .dilation_w = 1,
             .groups = 1};
  r.workspace_bytes = std::int64_t{5} << 30;
  return r;
}

std::string csv(const std::vector<Record>& records) {
  std::ostringstream out;
  write_csv_row(out, record_columns());
  for (const Record& record : records) write_record(out, record);
  return out.str();
}

std::vector<Record> read(const std::string& text, bool* cut = nullptr) {
  std::istringstream in(text);
  RecordReader reader(in, "r.csv");
  std::vector<Record> records;
  for (Record record; reader.next(record);) records.push_back(record);
  if (cut != nullptr) *cut = reader.cut_last_line();
  return records;
}

std::string error_of(const std::string& text) {
  try {
    read(text);
  } catch (const SpecError& error) {
    return error.what();
  }
  return "no error";
}

std::string with_time(double seconds) {
  Record r = gemm();
  r.time_s = seconds;
  return error_of(csv({r}));
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  return text.replace(text.find(from), from.size(), to);
}

TEST(Record, SurvivesWritingAndReading) {
  const std::vector<Record> records{gemm(), conv()};
  EXPECT_EQ(read(csv(records)), records);
}

TEST(Record, KeepsEveryDigitOfADouble) {
  Record r = gemm();
  r.time_s = 0.1 / 3;                              // 0.0333...: no short decimal form
  r.shape = {.m = 20000, .n = 20000, .k = 20000};  // 1.6e13 flop, so that a third of 0.1 s is believable
  EXPECT_EQ(read(csv({r})).at(0).time_s, 0.1 / 3);
}

TEST(Record, WritesPaddingOfZeroButLeavesOutWhatDoesNotApply) {
  const auto column = [](const std::string& name) {
    const auto names = record_columns();
    return static_cast<std::size_t>(std::find(names.begin(), names.end(), name) - names.begin());
  };
  EXPECT_EQ(record_fields(conv()).at(column("pad_h")), "0");
  EXPECT_EQ(record_fields(gemm()).at(column("pad_h")), "");
  EXPECT_EQ(record_fields(conv()).at(column("m")), "");
}

TEST(Record, AcceptsColumnsInAnyOrderAndLeavesOptionalOnesEmpty) {
  const auto records = read(
      "time_s,source,op,phase,gpu,generation,precision,layout,cache,k,m,n\n"
      "5e-05,a table,gemm,,P100,cublas8,fp32,NN,hot,3,1,2\n");
  ASSERT_EQ(records.size(), 1U);
  EXPECT_EQ(records[0].shape, (RecordShape{.m = 1, .n = 2, .k = 3}));
  EXPECT_EQ(records[0].samples, 0);
  EXPECT_EQ(records[0].driver, "");
}

TEST(Record, NamesAMissingColumn) {
  EXPECT_EQ(error_of("gpu,generation,precision,op,phase,layout,cache,source\n"),
            "r.csv:1:1: column 'time_s' is missing");
  EXPECT_EQ(error_of("gpu,generation,precision,op,phase,m,n,k,time_s\n"),
            "r.csv:1:1: columns 'layout', 'cache', 'source' are missing");
}

TEST(Record, SuspectsAColumnInAnotherUnit) {
  // A file in milliseconds names its column so: the missing one is reported together with what is there.
  EXPECT_THAT(error_of("gpu,generation,precision,op,phase,layout,cache,source,time_ms\n"),
              HasSubstr("'time_s' is missing; did you mean 'time_ms'?"));
}

TEST(Record, RefusesAnUnknownColumn) {
  EXPECT_THAT(error_of("gpu,generation,precision,op,phase,layout,cache,source,time_s,spred\n"),
              HasSubstr("unknown column 'spred'; did you mean 'spread'?"));
}

TEST(Record, RefusesSwappedUnits) {
  // 1760 x 16 x 1760 is 9.9e7 flop. 50 us is 2e12 flop/s. The same 50 read as seconds (microseconds in the
  // column), or 0.05 (milliseconds), is below 1e10 flop/s; 5e-11 s (kiloseconds) is shorter than a clock
  // cycle allows.
  EXPECT_EQ(with_time(5e-5), "no error");
  EXPECT_THAT(with_time(50), HasSubstr("r.csv:2:1: time_s is 50, which is below 1e10 flop/s"));
  EXPECT_THAT(with_time(0.05), HasSubstr("below 1e10 flop/s"));
  EXPECT_THAT(with_time(5e-11), HasSubstr("is the unit right?"));
  EXPECT_THAT(with_time(5000), HasSubstr("is the unit right?"));
}

TEST(Record, RefusesARateNoGpuReaches) {
  Record r = conv();
  r.shape.batch = 6400;  // 6400 * 56^2 * 64 * 64 * 2 = 1.6e11 flop in 1 us would be 1.6e17 flop/s
  r.time_s = 1e-6;
  EXPECT_THAT(error_of(csv({r})), HasSubstr("above 1e17 flop/s"));
  r.time_s = 1e-3;
  EXPECT_EQ(error_of(csv({r})), "no error");
}

TEST(Record, RefusesTimesThatAreZeroNegativeOrNoNumber) {
  EXPECT_THAT(with_time(0), HasSubstr("expected more than 0 seconds"));
  EXPECT_THAT(with_time(-5e-5), HasSubstr("expected more than 0 seconds"));
  EXPECT_THAT(with_time(std::nan("")), HasSubstr("expected a finite number"));
  EXPECT_THAT(with_time(INFINITY), HasSubstr("expected a finite number"));
  EXPECT_THAT(error_of(replaced(csv({gemm()}), "5e-05", "50us")), HasSubstr("column 'time_s' holds '50us'"));
}

TEST(Record, RefusesNamesOutsideTheSchema) {
  EXPECT_THAT(
      error_of(replaced(csv({gemm()}), "fp32", "fp33")),
      HasSubstr("column 'precision' holds 'fp33'; expected one of fp32, tf32, fp16, bf16, fp8; did you "
                "mean 'fp32'?"));
  EXPECT_THAT(error_of(replaced(csv({gemm()}), "cold", "warm")), HasSubstr("column 'cache' holds 'warm'"));
  EXPECT_THAT(error_of(replaced(csv({conv()}), "backward_weights", "wgrad")),
              HasSubstr("column 'phase' holds 'wgrad'"));
  EXPECT_THAT(error_of(replaced(csv({gemm()}), "NVIDIA TITAN Xp", "")), HasSubstr("column 'gpu' is empty"));
}

// A product without k, a convolution without filters, a filter larger than its padded input.
TEST(Record, RefusesACallWithoutTheSizesItNeeds) {
  Record r = gemm();
  r.shape.k = 0;
  EXPECT_THAT(error_of(csv({r})), HasSubstr("column 'k' is missing or 0; gemm needs 1 or more"));
  r = conv();
  r.shape.filters = 0;
  EXPECT_THAT(error_of(csv({r})), HasSubstr("column 'filters' is missing or 0; conv needs 1 or more"));
  r = conv();
  r.shape.filter_h = 57;
  EXPECT_THAT(error_of(csv({r})), HasSubstr("the filter is larger than the padded input"));
}

TEST(Record, RefusesANegativeSizeByName) {
  Record r = gemm();
  r.shape.n = -16;
  EXPECT_THAT(error_of(csv({r})), HasSubstr("column 'n' is negative"));
}

TEST(Record, LeavesOutAnUnfinishedLastLine) {
  const std::string whole = csv({gemm(), conv()});
  const std::size_t second = csv({gemm()}).size();
  // Cut at every place within the last row, its line break included: one record remains, and it is said.
  for (std::size_t length = second + 1; length < whole.size(); ++length) {
    bool cut = false;
    EXPECT_EQ(read(whole.substr(0, length), &cut), std::vector<Record>{gemm()}) << length;
    EXPECT_TRUE(cut) << length;
  }
  bool cut = true;
  EXPECT_EQ(read(whole, &cut).size(), 2U);
  EXPECT_FALSE(cut);
}

TEST(Record, DoesNotTakeABrokenRowInTheMiddleForAnUnfinishedLine) {
  const std::string text =
      replaced(csv({gemm(), conv()}), "cold", "\"cold");  // an open quote runs to the end
  EXPECT_THAT(error_of(text.substr(0, text.size() - 1)), HasSubstr("r.csv:2:1"));
}

TEST(Record, ReadsAFileAndSaysWhatItLeftOut) {
  const std::string path = testing::TempDir() + "record_test.csv";
  std::ofstream(path) << csv({gemm(), conv()}) << "half a row";
  const RecordTable table = read_records(path);
  EXPECT_EQ(table.records.size(), 2U);
  EXPECT_THAT(table.notes, testing::ElementsAre(path + ": the last line is unfinished and was left out"));
  EXPECT_THROW(static_cast<void>(read_records(path + ".absent")), UsageError);
}

TEST(Record, KeepsTheFastestOfDuplicates) {
  Record slow = gemm();
  slow.time_s = 6e-5;
  Record fast = gemm();
  fast.time_s = 4e-5;
  Record other_cache = gemm();
  other_cache.cache = "hot";
  Record other_workspace = conv();
  other_workspace.workspace_bytes = 0;
  std::vector<Record> records{slow, conv(), fast, other_cache, other_workspace, gemm()};
  EXPECT_EQ(drop_duplicates(records), 2U);
  EXPECT_EQ(records, (std::vector<Record>{fast, conv(), other_cache, other_workspace}));
}

// A library picks the fastest of its algorithms; another phase is another call, and rows of other ops stay.
TEST(Record, KeepsTheFastestAlgorithm) {
  Record slow = conv();
  slow.algorithm = "GEMM";
  slow.time_s = 2 * conv().time_s;
  Record other_phase = slow;
  other_phase.phase = "backward_data";
  Record copy = gemm();
  copy.op = "copy_h2d";
  std::vector<Record> records{slow, conv(), other_phase, copy, copy};
  EXPECT_EQ(keep_fastest_algorithms(records), 1U);
  EXPECT_EQ(records, (std::vector<Record>{conv(), other_phase, copy, copy}));
}

TEST(Record, KeyTellsLayoutsAndPhasesApart) {
  Record other = conv();
  other.layout = "NHWC";
  EXPECT_NE(record_key(conv()), record_key(other));
  other = conv();
  other.phase = "forward";
  EXPECT_NE(point_key(conv()), point_key(other));
  other = conv();
  other.gpu = "another";
  EXPECT_NE(record_key(conv()), record_key(other));
  EXPECT_EQ(point_key(conv()), point_key(other));
}

TEST(RecordShape, OutputSizeFloorsLikeCudnn) {
  EXPECT_EQ(output_size(224, 7, 3, 2, 1), 112);   // (224 + 6 - 7) / 2 + 1 = 112.5
  EXPECT_EQ(output_size(161, 41, 20, 2, 1), 81);  // (161 + 40 - 41) / 2 + 1
  EXPECT_EQ(output_size(10, 3, 0, 1, 2), 6);      // a dilated filter of 3 reaches over 5
  EXPECT_EQ(output_size(3, 7, 1, 1, 1), 0);       // does not fit
}

TEST(RecordShape, TextNamesOnlyWhatApplies) { EXPECT_EQ(to_text(gemm().shape), "m=1760 n=16 k=1760"); }

}  // namespace
}  // namespace tbdsim
