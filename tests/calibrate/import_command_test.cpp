// `tbd-calibrate import` in-process: what it writes, prints and refuses.
#include <filesystem>
#include <fstream>
#include <sstream>

#include <gmock/gmock.h>

#include "calibrate/cli/cli.h"
#include "calibrate/records/record.h"
#include "tests/support/temp_dir.h"

namespace tbdsim {
namespace {
using testing::HasSubstr;
using testing::IsEmpty;

const std::string kHeader = "gpu,mode,cuda,precision,M,N,K,transA,transB,time_ms,source\n";
const std::string kRow = "NV_TitanXp,train,8.0.88,fp32,1760,16,1024,N,T,0.050,sheet!4\n";

class ImportCommand : public testing::Test {
 protected:
  int run(const std::vector<std::string>& arguments) {
    out_.str("");
    err_.str("");
    return run_calibrate(
        arguments, {.out = out_, .err = err_, .data_dir = TBDSIM_SOURCE_DIR, .interrupted = &interrupted_});
  }
  std::string written(const std::string& name) const { return (dir_.path() / name).string(); }

  test::TempDir dir_;
  std::ostringstream out_;
  std::ostringstream err_;
  std::atomic<bool> interrupted_ = false;
};

TEST_F(ImportCommand, WritesTheRecordsOfAllFiles) {
  const std::string table = dir_.write("gemm.csv", kHeader + kRow).string();
  EXPECT_EQ(run({"import", "deepbench", table, table, "-o", written("r.csv")}), 0);
  EXPECT_EQ(err_.str(), "");
  EXPECT_EQ(out_.str(),
            table + ": deepbench, 1 rows, 1 records\n" + table + ": deepbench, 1 rows, 1 records\n");
  const RecordTable records = read_records(written("r.csv"));
  ASSERT_EQ(records.records.size(), 2u);
  EXPECT_EQ(records.records[1].gpu, "titanxp");
  EXPECT_EQ(run({"import", written("r.csv"), "-o", written("again.csv")}), 0);
  EXPECT_EQ(read_records(written("again.csv")).records, records.records);
}

TEST_F(ImportCommand, AWrongRowLeavesNothingBehind) {
  dir_.write("r.csv", "what was there\n");
  const std::string table = dir_.write("gemm.csv", kHeader + kRow + "NV_TitanXp,train\n").string();
  EXPECT_EQ(run({"import", table, "-o", written("r.csv")}), 2);
  EXPECT_EQ(err_.str(),
            "tbd-calibrate: " + table + ":3:1: the row has 2 fields; expected 11 as in the header\n");
  std::ifstream kept(written("r.csv"));
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(kept), {}), "what was there\n");
  const auto files = std::distance(std::filesystem::directory_iterator(dir_.path()), {});
  EXPECT_EQ(files, 2) << "a temporary file stayed";
}

TEST_F(ImportCommand, AnInterruptLeavesNothingBehind) {
  interrupted_ = true;
  const std::string table = dir_.write("gemm.csv", kHeader + kRow).string();
  EXPECT_EQ(run({"import", table, "-o", written("r.csv")}), 130);
  EXPECT_FALSE(std::filesystem::exists(written("r.csv")));
}

TEST_F(ImportCommand, ListNamesEverySource) {
  EXPECT_EQ(run({"import", "--list"}), 0);
  for (const char* source :
       {"deepbench", "neusight", "aiconfigurator", "pipeweave", "training_kernels", "attention_kernels",
        "rnn_tables", "sockeye", "tensorflow", "torch7", "records"}) {
    EXPECT_THAT(out_.str(), HasSubstr(std::string("\n") + source + " "));
  }
}

TEST_F(ImportCommand, WrongCommandLines) {
  const std::string table = dir_.write("gemm.csv", kHeader + kRow).string();
  const auto refused = [&](const std::vector<std::string>& arguments) {
    EXPECT_EQ(run(arguments), 2);
    EXPECT_THAT(out_.str(), IsEmpty());
    return err_.str();
  };
  EXPECT_THAT(refused({"import", "-o", "x.csv"}), HasSubstr("no file to read"));
  EXPECT_THAT(refused({"import", table}), HasSubstr("no --output"));
  EXPECT_THAT(refused({"import", "deepbanch", table, "-o", "x.csv"}), HasSubstr("did you mean 'deepbench'?"));
  EXPECT_THAT(refused({"import", "none.csv", "-o", "x.csv"}), HasSubstr("none.csv: cannot be read"));
  EXPECT_THAT(refused({"imprt"}), HasSubstr("unknown argument 'imprt'; did you mean 'import'?"));
  EXPECT_THAT(refused({"import", "--lst"}), HasSubstr("'--lst'"));
}

}  // namespace
}  // namespace tbdsim
