#include "hwspecs/gpu_names.h"

#include <map>
#include <set>
#include <string>
#include <vector>

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

// Separators do not matter: names of people, of file systems, of labels of a cluster's nodes.
TEST(GpuNames, HoweverTheyAreSpaced) {
  EXPECT_EQ(gpu_name("RTX3090", names()), "rtx3090");
  EXPECT_EQ(gpu_name("gtx 1080ti", names()), "gtx1080ti");
  EXPECT_EQ(gpu_name("NVIDIA-A100-SXM4-40GB", names()), "a100_sxm_40gb");
  EXPECT_EQ(gpu_name("NVIDIA_H100_80GB_HBM3", names()), "h100_sxm");
  EXPECT_EQ(gpu_name("A100 SXM4 80GB", names()), "a100_sxm_80gb");
  EXPECT_EQ(gpu_name("V100 PCIe 32GB", names()), "v100_pcie_32gb");
  EXPECT_THROW(static_cast<void>(gpu_name("NVIDIATITANXp", names())), UsageError);
}

// Names that `nvidia-smi -L` prints for every card of the catalogue: from Turing on as in the list of the
// NVIDIA open GPU kernel modules 595.45; before 470, drivers left "NVIDIA" out. The driver gives the RTX 3080
// and the RTX 4060 Ti one name each, whatever their memory.
TEST(GpuNames, EveryCardByTheNameOfItsDriver) {
  const std::map<std::string, std::vector<std::string>> printed = {
      {"a10", {"NVIDIA A10"}},
      {"a100_pcie_40gb", {"NVIDIA A100-PCIE-40GB", "A100-PCIE-40GB"}},
      {"a100_pcie_80gb", {"NVIDIA A100 80GB PCIe"}},
      {"a100_sxm_40gb", {"NVIDIA A100-SXM4-40GB", "A100-SXM4-40GB"}},
      {"a100_sxm_80gb", {"NVIDIA A100-SXM4-80GB", "A100-SXM4-80GB"}},
      {"a10g", {"NVIDIA A10G"}},
      {"a30", {"NVIDIA A30"}},
      {"a40", {"NVIDIA A40"}},
      {"a800_pcie_80gb", {"NVIDIA A800 80GB PCIe"}},
      {"a800_sxm_80gb", {"NVIDIA A800-SXM4-80GB"}},
      {"b200", {"NVIDIA B200"}},
      {"b300", {"NVIDIA B300 SXM6 AC"}},
      {"gb200", {"NVIDIA GB200"}},
      {"gb300", {"NVIDIA GB300"}},
      {"gh200_96gb", {"NVIDIA GH200", "NVIDIA GH200 480GB"}},
      {"gtx1070", {"NVIDIA GeForce GTX 1070", "GeForce GTX 1070"}},
      {"gtx1080", {"NVIDIA GeForce GTX 1080", "GeForce GTX 1080"}},
      {"gtx1080ti", {"NVIDIA GeForce GTX 1080 Ti", "GeForce GTX 1080 Ti"}},
      {"gtx970", {"NVIDIA GeForce GTX 970", "GeForce GTX 970"}},
      {"h100_nvl", {"NVIDIA H100 NVL"}},
      {"h100_pcie", {"NVIDIA H100 PCIe"}},
      {"h100_sxm", {"NVIDIA H100 80GB HBM3"}},
      {"h20", {"NVIDIA H20"}},
      {"h200", {"NVIDIA H200"}},
      {"h200_nvl", {"NVIDIA H200 NVL"}},
      {"h800_pcie", {"NVIDIA H800 PCIe"}},
      {"h800_sxm", {"NVIDIA H800"}},
      {"k40", {"Tesla K40c", "Tesla K40m"}},
      {"k80", {"Tesla K80"}},
      {"l20", {"NVIDIA L20"}},
      {"l4", {"NVIDIA L4"}},
      {"l40", {"NVIDIA L40"}},
      {"l40s", {"NVIDIA L40S"}},
      {"m40", {"Tesla M40"}},
      {"m60", {"Tesla M60"}},
      {"p100_pcie", {"Tesla P100-PCIE-16GB"}},
      {"p100_sxm2", {"Tesla P100-SXM2-16GB"}},
      {"p4", {"Tesla P4"}},
      {"p40", {"Tesla P40"}},
      {"p4000", {"Quadro P4000"}},
      {"quadro_rtx6000", {"Quadro RTX 6000"}},
      {"quadro_rtx8000", {"Quadro RTX 8000"}},
      {"rtx2070", {"NVIDIA GeForce RTX 2070", "GeForce RTX 2070"}},
      {"rtx2080", {"NVIDIA GeForce RTX 2080", "GeForce RTX 2080"}},
      {"rtx2080ti", {"NVIDIA GeForce RTX 2080 Ti", "GeForce RTX 2080 Ti"}},
      {"rtx3060", {"NVIDIA GeForce RTX 3060"}},
      {"rtx3060ti", {"NVIDIA GeForce RTX 3060 Ti"}},
      {"rtx3070", {"NVIDIA GeForce RTX 3070", "GeForce RTX 3070"}},
      {"rtx3070ti", {"NVIDIA GeForce RTX 3070 Ti"}},
      {"rtx3080", {"NVIDIA GeForce RTX 3080", "GeForce RTX 3080"}},
      {"rtx3080ti", {"NVIDIA GeForce RTX 3080 Ti"}},
      {"rtx3090", {"NVIDIA GeForce RTX 3090", "GeForce RTX 3090"}},
      {"rtx4060", {"NVIDIA GeForce RTX 4060"}},
      {"rtx4060ti", {"NVIDIA GeForce RTX 4060 Ti"}},
      {"rtx4070", {"NVIDIA GeForce RTX 4070"}},
      {"rtx4070_super", {"NVIDIA GeForce RTX 4070 SUPER"}},
      {"rtx4070ti", {"NVIDIA GeForce RTX 4070 Ti"}},
      {"rtx4070ti_super", {"NVIDIA GeForce RTX 4070 Ti SUPER"}},
      {"rtx4080", {"NVIDIA GeForce RTX 4080"}},
      {"rtx4080_super", {"NVIDIA GeForce RTX 4080 SUPER"}},
      {"rtx4090", {"NVIDIA GeForce RTX 4090"}},
      {"rtx5080", {"NVIDIA GeForce RTX 5080"}},
      {"rtx5090", {"NVIDIA GeForce RTX 5090"}},
      {"rtx6000_ada", {"NVIDIA RTX 6000 Ada Generation"}},
      {"rtx_pro_6000", {"NVIDIA RTX PRO 6000 Blackwell Workstation Edition"}},
      {"rtx_pro_6000_maxq", {"NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition"}},
      {"rtx_pro_6000_server", {"NVIDIA RTX PRO 6000 Blackwell Server Edition"}},
      {"rtxa6000", {"NVIDIA RTX A6000", "RTX A6000"}},
      {"rtxa5000", {"NVIDIA RTX A5000", "RTX A5000"}},
      {"t4", {"Tesla T4"}},
      {"titanrtx", {"NVIDIA TITAN RTX", "TITAN RTX"}},
      {"titanv", {"NVIDIA TITAN V", "TITAN V"}},
      {"titanx_maxwell", {"NVIDIA GeForce GTX TITAN X", "GeForce GTX TITAN X"}},
      {"titanx_pascal", {"NVIDIA TITAN X (Pascal)", "TITAN X (Pascal)"}},
      {"titanxp", {"NVIDIA TITAN Xp", "TITAN Xp", "NVIDIA TITAN Xp COLLECTORS EDITION"}},
      {"v100_dgxs_32gb", {"Tesla V100-DGXS-32GB"}},
      {"v100_pcie_16gb", {"Tesla V100-PCIE-16GB"}},
      {"v100_pcie_32gb", {"Tesla V100-PCIE-32GB"}},
      {"v100s_pcie_32gb", {"Tesla V100S-PCIE-32GB"}},
      {"v100_sxm2_16gb", {"Tesla V100-SXM2-16GB"}},
      {"v100_sxm2_32gb", {"Tesla V100-SXM2-32GB"}},
      {"v100_sxm3_32gb", {"Tesla V100-SXM3-32GB"}},
      {"v100_sxm3_32gb_450w", {"Tesla V100-SXM3-32GB-H"}},
  };
  for (const auto& [gpu, devices] : printed) {
    for (const std::string& device : devices) EXPECT_EQ(gpu_name(device, names()), gpu) << device;
  }
  const std::set<std::string> one_name{"h100_sxm_96gb", "h100_sxm_96gb_500w", "rtx3080_12gb",
                                       "rtx4060ti_16gb"};
  for (const std::string& gpu : Catalog::from(TBDSIM_SOURCE_DIR).names(Kind::gpu))
    EXPECT_NE(printed.contains(gpu), one_name.contains(gpu)) << gpu;
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
  for (const char* copy : {"first", "other"}) {
    std::filesystem::copy_file(source / "hwspecs/gpus/titanxp.yaml",
                               dir.path() / "hwspecs/gpus" / (std::string(copy) + ".yaml"));
  }
  const std::string message =
      test::message_of<UsageError>([&] { static_cast<void>(read_gpu_names(Catalog::from(dir.path()))); });
  EXPECT_EQ(message,
            "the GPUs first and other are both called 'NVIDIA TITAN Xp'; expected one GPU for a name");
}

}  // namespace
}  // namespace tbdsim
