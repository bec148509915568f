#include "hwspecs/gpu_names.h"

#include <gmock/gmock.h>

#include "hwspecs/base/error.h"
#include "tests/hwspecs/message_of.h"
#include "tests/support/temp_dir.h"

namespace tbdsim {
namespace {
using testing::HasSubstr;

const GpuNames& names() {
  static const GpuNames kNames = read_gpu_names(Catalog::from(TBDSIM_SOURCE_DIR));
  return kNames;
}

TEST(GpuNames, WhatDriversPrint) {
  EXPECT_EQ(gpu_name("TITAN Xp", names()), "titanxp");
  EXPECT_EQ(gpu_name("NVIDIA TITAN Xp", names()), "titanxp");
  EXPECT_EQ(gpu_name("TITAN X (Pascal)", names()), "titanx_pascal");
  EXPECT_EQ(gpu_name("GeForce GTX TITAN X", names()), "titanx_maxwell");
  EXPECT_EQ(gpu_name("NVIDIA GeForce GTX TITAN X", names()), "titanx_maxwell");
  EXPECT_EQ(gpu_name("Quadro P4000", names()), "p4000");
  EXPECT_EQ(gpu_name("Tesla V100-SXM2-16GB", names()), "v100_sxm2_16gb");
  EXPECT_EQ(gpu_name("V100-SXM2-32GB", names()), "v100_sxm2_32gb");
  EXPECT_EQ(gpu_name("Tesla T4", names()), "t4");
  EXPECT_EQ(gpu_name("Tesla K80", names()), "k80");
  EXPECT_EQ(gpu_name("NVIDIA A100-SXM4-80GB", names()), "a100_sxm_80gb");
  EXPECT_EQ(gpu_name("NVIDIA A100 80GB PCIe", names()), "a100_pcie_80gb");
  EXPECT_EQ(gpu_name("nvidia h100 80gb hbm3", names()), "h100_sxm");
  EXPECT_EQ(gpu_name("NVIDIA H200", names()), "h200");
}

TEST(GpuNames, TitlesAndFilesNameThemselves) {
  const Catalog catalog = Catalog::from(TBDSIM_SOURCE_DIR);
  for (const std::string& stem : catalog.names(Kind::gpu)) EXPECT_EQ(gpu_name(stem, names()), stem);
  EXPECT_EQ(gpu_name("NVIDIA Tesla P100 PCIe 16 GB", names()), "p100_pcie");
}

TEST(GpuNames, AnUnknownOneIsAnError) {
  const std::string message =
      test::message_of<UsageError>([] { static_cast<void>(gpu_name("Tesla V100-SXM2-61GB", names())); });
  EXPECT_THAT(message, HasSubstr("unknown GPU 'Tesla V100-SXM2-61GB'; did you mean 'Tesla V100-SXM2-16GB'?"));
  EXPECT_THROW(static_cast<void>(gpu_name("", names())), UsageError);
  EXPECT_THROW(static_cast<void>(gpu_name("NVIDIA", names())), UsageError);
}

TEST(GpuNames, TwoGpusOfOneNameAreAnError) {
  const test::TempDir dir;
  const std::filesystem::path source = TBDSIM_SOURCE_DIR;
  for (const KindInfo& kind : kKinds) std::filesystem::create_directories(dir.path() / kind.folder);
  std::filesystem::copy(source / "hwspecs/links", dir.path() / "hwspecs/links",
                        std::filesystem::copy_options::recursive);
  for (const char* copy : {"titanxp", "other"}) {
    std::filesystem::copy_file(source / "hwspecs/gpus/titanxp.yaml",
                               dir.path() / "hwspecs/gpus" / (std::string(copy) + ".yaml"));
  }
  const std::string message =
      test::message_of<UsageError>([&] { static_cast<void>(read_gpu_names(Catalog::from(dir.path()))); });
  EXPECT_EQ(message,
            "the GPUs other and titanxp are both called 'NVIDIA TITAN Xp'; expected one GPU for a name");
}

}  // namespace
}  // namespace tbdsim
