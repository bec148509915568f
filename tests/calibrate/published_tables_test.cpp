// The published tables themselves, where they lie beside the source tree (../shared/reference/kernels) or in
// the folder that TBDSIM_REFERENCE names: every row becomes a record or is counted.
#include <cstdlib>
#include <filesystem>
#include <set>

#include <gmock/gmock.h>

#include "calibrate/importers/importers.h"

namespace tbdsim {
namespace {

struct PublishedTable {
  const char* file;
  std::int64_t rows;
  std::int64_t records;
};
void PrintTo(const PublishedTable& table, std::ostream* out) { *out << table.file; }

class PublishedTables : public testing::TestWithParam<PublishedTable> {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(path_)) GTEST_SKIP() << "no published table at " << path_;
  }

  static std::filesystem::path folder() {
    if (const char* named = std::getenv("TBDSIM_REFERENCE"); named != nullptr && *named != '\0') return named;
    return std::filesystem::path(TBDSIM_SOURCE_DIR).parent_path() / "shared/reference";
  }
  std::filesystem::path path_ = folder() / "kernels" / GetParam().file;
};

TEST_P(PublishedTables, EveryRowIsARecordOrCounted) {
  std::set<std::string> gpus;
  const ImportSummary summary =
      import_table(path_.string(), "", [&](const Record& record) { gpus.insert(record.gpu); });
  EXPECT_EQ(summary.rows, GetParam().rows);
  EXPECT_EQ(summary.records, GetParam().records);
  for (const std::string& gpu : gpus) {
    EXPECT_TRUE(std::filesystem::exists(std::string(TBDSIM_SOURCE_DIR) + "/hwspecs/gpus/" + gpu + ".yaml"))
        << gpu;
  }
}

INSTANTIATE_TEST_SUITE_P(, PublishedTables,
                         testing::Values(PublishedTable{"deepbench_gemm.csv", 2060, 1600},
                                         PublishedTable{"deepbench_conv.csv", 2860, 2600},
                                         PublishedTable{"deepbench_rnn.csv", 1558, 1245},
                                         PublishedTable{"neusight_gemm.csv", 141562, 141562},
                                         PublishedTable{"neusight_conv.csv", 24662, 24662},
                                         PublishedTable{"neusight_elementwise.csv", 117624, 117624},
                                         PublishedTable{"aic_gemm_bf16.csv", 30000, 30000},
                                         PublishedTable{"gemm_fp8.csv", 5000, 879},
                                         PublishedTable{"rnn_train_benchmarks.csv", 184, 148},
                                         PublishedTable{"echo_sockeye_kernels.csv", 753, 629},
                                         PublishedTable{"cnn_benchmarks_torch7.csv", 214, 362},
                                         PublishedTable{"justus_conv_tensorflow.csv", 8000, 3327},
                                         PublishedTable{"justus_dense_tensorflow.csv", 8000, 4024}),
                         [](const auto& test) {
                           return std::filesystem::path(test.param.file).stem().string();
                         });

}  // namespace
}  // namespace tbdsim
