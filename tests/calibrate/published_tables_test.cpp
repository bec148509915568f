// Published tables of kernel times: every row becomes a record or is counted, in a few rows of each table
// and, where someone has them (published_tables.h), in the whole tables.
#include "tests/calibrate/published_tables.h"

#include <filesystem>
#include <set>

#include <gmock/gmock.h>

#include "calibrate/importers/importers.h"

namespace tbdsim {
namespace {

struct Counts {
  std::int64_t rows = 0;
  std::int64_t records = 0;
};

struct PublishedTable {
  const char* file;
  Counts few;
  Counts whole;
};
void PrintTo(const PublishedTable& table, std::ostream* out) { *out << table.file; }

class PublishedTables : public testing::TestWithParam<PublishedTable> {};

void expect_counts(const std::filesystem::path& path, const Counts& expected) {
  std::set<std::string> gpus;
  const ImportSummary summary =
      import_table(path.string(), "", [&](const Record& record) { gpus.insert(record.gpu); });
  EXPECT_EQ(summary.rows, expected.rows);
  EXPECT_EQ(summary.records, expected.records);
  for (const std::string& gpu : gpus) {
    EXPECT_TRUE(std::filesystem::exists(std::string(TBDSIM_SOURCE_DIR) + "/hwspecs/gpus/" + gpu + ".yaml"))
        << gpu;
  }
}

TEST_P(PublishedTables, EveryRowIsARecordOrCounted) {
  expect_counts(test::few_rows() / std::filesystem::path(GetParam().file).filename(), GetParam().few);
}

TEST_P(PublishedTables, EveryRowOfTheWholeTableIsARecordOrCounted) {
  const auto folder = test::whole_tables();
  if (!folder) GTEST_SKIP() << "the whole published tables are not here; a few rows of each were tested";
  expect_counts(*folder / GetParam().file, GetParam().whole);
}

INSTANTIATE_TEST_SUITE_P(
    , PublishedTables,
    testing::Values(PublishedTable{"deepbench_gemm.csv", {108, 53}, {2060, 1440}},
                    PublishedTable{"deepbench_conv.csv", {8, 8}, {2860, 2600}},
                    PublishedTable{"deepbench_rnn.csv", {99, 97}, {1558, 1245}},
                    PublishedTable{"neusight_gemm.csv", {8, 8}, {141562, 141562}},
                    PublishedTable{"neusight_conv.csv", {8, 8}, {24662, 24662}},
                    PublishedTable{"neusight_elementwise.csv", {8, 8}, {117624, 117624}},
                    PublishedTable{"aic_gemm_bf16.csv", {8, 8}, {30000, 30000}},
                    PublishedTable{"gemm_fp8.csv", {8, 1}, {5000, 879}},
                    PublishedTable{"../llm/training_kernels.csv", {8, 7}, {1099, 817}},
                    PublishedTable{"../llm/attention_kernels.csv", {8, 4}, {18847, 17349}},
                    PublishedTable{"rnn_train_benchmarks.csv", {8, 7}, {184, 148}},
                    PublishedTable{"echo_sockeye_kernels.csv", {8, 5}, {753, 629}},
                    PublishedTable{"cnn_benchmarks_torch7.csv", {8, 12}, {214, 362}},
                    PublishedTable{"justus_conv_tensorflow.csv", {8, 3}, {8000, 3327}},
                    PublishedTable{"justus_dense_tensorflow.csv", {8, 4}, {8000, 4024}}),
    [](const auto& test) { return std::filesystem::path(test.param.file).stem().string(); });

}  // namespace
}  // namespace tbdsim
