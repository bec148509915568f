// Fitting what collectives cost to curves that were made with known costs, and what is refused.
#include <sstream>

#include <gmock/gmock.h>

#include "calibrate/fit/collective_fit.h"
#include "costmodel/communication/topology.h"
#include "hwspecs/base/error.h"
#include "tests/calibrate/run_calibrate.h"
#include "tests/support/temp_dir.h"

namespace tbdsim {
namespace {

using testing::HasSubstr;

const char* const kTable =
    "gpu,collective,gpus,machines,bytes,time_ms,algorithm\n"
    "v100,all_reduce,2,1,1000000,0.1,NCCL 2.0 MPI\n"
    "v100,all_gather,2,1,1000000,0.1,NCCL 2.0 MPI\n"
    "v100,all_reduce,16,2,1000000,0.1,NCCL 2.0 MPI\n"
    "v100,all_reduce,2,1,1000000,0.1,MPI\n"
    "p100,all_reduce,4,1,2000000,0.3,NCCL 2.0 MPI\n";

std::vector<MeasuredCollective> read(const std::string& text,
                                     const std::map<std::string, std::string>& only = {}) {
  std::istringstream in(text);
  return read_collectives(in, "t.csv", only);
}

// Another collective, several machines and another library are left out.
TEST(ReadCollectives, OfOneMachine) {
  const std::vector<MeasuredCollective> rows = read(kTable);
  ASSERT_EQ(rows.size(), 2);
  EXPECT_EQ(rows[0].gpus, 2);
  EXPECT_DOUBLE_EQ(rows[0].bytes.si(), 1e6);
  EXPECT_DOUBLE_EQ(rows[0].time.si(), 1e-4);
  EXPECT_EQ(rows[1].gpus, 4);
  EXPECT_EQ(read(kTable, {{"gpu", "p100"}}).size(), 1);
}

TEST(ReadCollectives, UnitsByColumn) {
  EXPECT_DOUBLE_EQ(read("num_gpus,bytes,latency_us\n2,8,5\n").front().time.si(), 5e-6);
  EXPECT_DOUBLE_EQ(read("ngpu,bytes,time_out_of_place_ns\n2,8,44210\n").front().time.si(), 44.21e-6);
  EXPECT_DOUBLE_EQ(read("gpus,size_bytes,median_ms\n2,8,0.5\n").front().time.si(), 0.5e-3);
}

TEST(ReadCollectives, WhatIsRefused) {
  EXPECT_THROW((void)read("bytes,time_ms\n8,1\n"), SpecError);
  EXPECT_THROW((void)read("gpus,bytes\n2,8\n"), SpecError);
  EXPECT_THROW((void)read("gpus,bytes,time_ms\n2,many,1\n"), SpecError);
}

class CommunicationFitting : public testing::Test {
 protected:
  CommunicationFitting()
      : catalog_(Catalog::from(TBDSIM_SOURCE_DIR)),
        machine_(read_machine(catalog_.find(Kind::machine, "dgx1_v100"), catalog_)),
        gpu_(read_gpu(catalog_.find(Kind::gpu, machine_.gpu), catalog_)) {}

  // Rings over plain links of 40 GB/s for any number of GPUs.
  static std::vector<MeasuredCollective> curve(const std::vector<int>& gpus) {
    std::vector<MeasuredCollective> rows;
    for (const int count : gpus) {
      for (double bytes = 1 << 10; bytes <= 1 << 28; bytes *= 4) {
        const double time = 20e-6 + 2 * (count - 1.0) / count * bytes / 40e9;
        rows.push_back({count, Bytes(bytes), Seconds(time)});
      }
    }
    return rows;
  }

  Catalog catalog_;
  MachineSpec machine_;
  GpuSpec gpu_;
};

// Curves of two and of four cards over PCI Express 5, of known costs.
TEST_F(CommunicationFitting, TellsTwoProtocolsApart) {
  const MachineSpec slots = read_machine(catalog_.find(Kind::machine, "server_pcie5"), catalog_);
  const GpuSpec card = read_gpu(catalog_.find(Kind::gpu, slots.gpu), catalog_);
  CollectiveCost cost{.launch = Seconds(3e-6), .step = Seconds(1.5e-6), .efficiency = 0.7, .root = {}};
  cost.simple_step = Seconds(6e-6);
  std::vector<MeasuredCollective> rows;
  for (const int gpus : {2, 4}) {
    const BytesPerSecond rate = Topology(slots, card, gpus).rings().bandwidth;
    const RankGroup group{.ranks = gpus, .bandwidth = rate, .per_rank = {}, .cost = cost};
    for (double bytes = 1 << 10; bytes <= 1 << 28; bytes *= 2)
      rows.push_back({gpus, Bytes(bytes), all_reduce_time({group, {}}, Bytes(bytes))});
  }
  const CommunicationFit fit = fit_communication(slots, card, rows);
  EXPECT_LT(fit.error, 0.01);
  EXPECT_NEAR(fit.cost.step.si(), 1.5e-6, 0.05e-6);
  EXPECT_NEAR(fit.cost.simple_step.si(), 6e-6, 0.2e-6);
  EXPECT_EQ(fit.cost.root, Seconds(0));
}

TEST_F(CommunicationFitting, FollowsOneCurve) {
  const CommunicationFit fit = fit_communication(machine_, gpu_, curve({4}));
  EXPECT_LT(fit.error, 0.03);
  EXPECT_EQ(fit.rows, static_cast<int>(curve({4}).size()));
  EXPECT_TRUE(fit.held_out.empty()) << "nothing is left without it";
}

TEST_F(CommunicationFitting, LeavesEachNumberOfGpusOut) {
  const CommunicationFit fit = fit_communication(machine_, gpu_, curve({2, 4, 8}));
  EXPECT_EQ(fit.errors.size(), 3);
  EXPECT_EQ(fit.held_out.size(), 3);
}

TEST_F(CommunicationFitting, WhatIsRefused) {
  EXPECT_THROW((void)fit_communication(machine_, gpu_, {}), UsageError);
  EXPECT_THROW((void)fit_communication(machine_, gpu_, curve({9})), UsageError) << "the machine has 8";
}

TEST(FitCommunicationCommand, PrintsWhatALinksFileHolds) {
  const test::TempDir directory;
  std::string table = "gpus,bytes,time_ms\n";
  for (const char* row : {"2,1024,0.02\n", "2,1048576,0.05\n", "2,16777216,0.6\n", "2,268435456,9\n"})
    table += row;
  const std::string file = directory.write("nccl.csv", table).string();
  const test::CliResult result = test::calibrate({"fit-communication", file, "--machine", "dgx1_v100"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("collective: {launch: "));
  EXPECT_THAT(result.out, HasSubstr("# 4 rows, mean error "));
  const test::CliResult unknown = test::calibrate({"fit-communication", file, "--machine", "dgx1_v10"});
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_THAT(unknown.err, HasSubstr("did you mean 'dgx1_v100'?"));
  const test::CliResult only =
      test::calibrate({"fit-communication", file, "--machine", "dgx1_v100", "--only", "v100"});
  EXPECT_EQ(only.err, "tbd-calibrate: --only 'v100': expected a column and a value, as gpu=v100\n");
}

}  // namespace
}  // namespace tbdsim
