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

// A product x[1024 x 512] w[512 x 2048] of a weight stored as [2048 x 512], three times in 400, 420 and 410
// us: cuBLAS computes y' = w' x' in columns, m 2048, n 1024, w as it lies (T), x as it lies (N).
TEST_F(ImportCommand, AProfileWithShapesIsATableOfRecords) {
  const std::string trace = TBDSIM_SOURCE_DIR "/tests/import/files/trace_shapes.json";
  EXPECT_EQ(run({"import", trace, "--cudnn", "8", "-o", written("r.csv")}), 0);
  EXPECT_EQ(err_.str(), "");
  EXPECT_THAT(out_.str(), HasSubstr("1 shape left out: other operators"));
  EXPECT_THAT(out_.str(), HasSubstr("1 kernels left out: no shapes"));
  const std::vector<Record> records = read_records(written("r.csv")).records;
  EXPECT_THAT(out_.str(),
              HasSubstr("1 shape left out: gradients of convolutions whose kernels' names do not tell"));
  ASSERT_EQ(records.size(), 5u);
  const Record& product = records[0];
  EXPECT_EQ(product.gpu, "Tesla V100-SXM2-16GB");
  EXPECT_EQ(product.generation, "cublas12");
  EXPECT_EQ(product.op + product.precision + product.layout, "gemmfp32TN");
  EXPECT_EQ(to_text(product.shape), "m=2048 n=1024 k=512");
  EXPECT_DOUBLE_EQ(product.time_s, 410e-6);
  EXPECT_NEAR(product.spread, 1.4826 * 10 / 410, 1e-12);
  EXPECT_EQ(product.samples, 3);
  const Record& added = records[1];
  EXPECT_EQ(added.precision + added.layout, "fp16TN+");
  EXPECT_EQ(added.kernels, 2);
  EXPECT_DOUBLE_EQ(added.time_s, 45e-6) << "both kernels of the call";
  EXPECT_EQ(added.kernel, "volta_fp16_s884gemm_fp16_128x128_ldg8_f2f_tn");
  const Record& conv = records[2];
  EXPECT_EQ(conv.generation + conv.phase + conv.layout, "cudnn8forwardNCHW");
  EXPECT_EQ(conv.shape.stride_h, 2);
  EXPECT_EQ(conv.shape.pad_w, 1);
  EXPECT_EQ(conv.shape.groups, 1);
  const Record &of_data = records[3], &of_weights = records[4];
  EXPECT_EQ(of_data.phase + of_weights.phase, "backward_databackward_weights");
  EXPECT_EQ(to_text(of_data.shape), to_text(conv.shape));
  EXPECT_EQ(of_data.kernels, 2);
  EXPECT_DOUBLE_EQ(of_data.time_s, 620e-6);
  EXPECT_DOUBLE_EQ(of_weights.time_s, 900e-6);
}

TEST_F(ImportCommand, AProfileWithoutShapesIsRefused) {
  const std::string files = TBDSIM_SOURCE_DIR "/tests/import/files/";
  EXPECT_EQ(run({"import", files + "trace.json", "-o", written("r.csv")}), 2);
  EXPECT_THAT(err_.str(), HasSubstr("expected torch.profiler.profile(record_shapes=True)"));
  EXPECT_EQ(run({"import", files + "nsys_kern_sum.csv", "-o", written("r.csv")}), 2);
  EXPECT_THAT(err_.str(), HasSubstr("has no shapes"));
  EXPECT_EQ(run({"import", files + "trace_shapes.json", "-o", written("r.csv")}), 0);
  EXPECT_THAT(out_.str(), HasSubstr("left out: convolutions, without --cudnn"));
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
