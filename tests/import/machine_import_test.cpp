// How tools print the topology of a machine becomes a machine file that loads and predicts.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "hwspecs/base/error.h"
#include "hwspecs/base/file.h"
#include "hwspecs/machine_spec.h"
#include "simulate/import/machine_facts.h"
#include "tests/hwspecs/message_of.h"
#include "tests/import/files.h"
#include "tests/support/cli.h"
#include "tests/support/temp_dir.h"

namespace tbdsim {
namespace {

using test::import_file;
using testing::ElementsAre;
using testing::HasSubstr;

MachineSpec imported(const std::string& file, const std::vector<std::string>& more = {}) {
  const test::TempDir dir;
  std::vector<std::string> arguments = {"import", import_file(file), "-o", dir.path().string()};
  arguments.insert(arguments.end(), more.begin(), more.end());
  const test::CliResult result = test::run(arguments);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const std::string stem = std::filesystem::path(file).stem().string();
  return read_machine(dir.path() / (stem + ".yaml"), test::source_specs().catalog());
}

TEST(TopologyMatrix, TellsPeersBelowASwitchOfASocketAndAcross) {
  const MachineSpec machine = imported("topo_1080ti.txt", {"--gpu", "gtx1080ti"});
  EXPECT_EQ(machine.gpu, "gtx1080ti");
  EXPECT_EQ(machine.sockets, 2);
  ASSERT_EQ(machine.root_ports.size(), 4u);
  EXPECT_THAT(machine.root_ports[0].gpus, ElementsAre(0, 1));
  EXPECT_EQ(machine.root_ports[2].socket, 1);
  EXPECT_TRUE(are_peers(machine, 0, 1));   // PIX
  EXPECT_TRUE(are_peers(machine, 0, 3));   // PHB
  EXPECT_FALSE(are_peers(machine, 0, 4));  // SYS
}

// Also where the file names no GPU and none is given.
TEST(TopologyMatrix, OfSysOnlyHasNoPeers) {
  for (const auto& more : {std::vector<std::string>{}, {"--gpu", "rtx4090"}}) {
    const MachineSpec machine = imported("topo_4090.txt", more);
    EXPECT_EQ(machine.gpus, 8);
    for (int a = 0; a < 8; ++a) {
      for (int b = 0; b < a; ++b) EXPECT_FALSE(are_peers(machine, a, b));
    }
  }
}

// The matrix of a DGX-1 holds all that the catalogue's file of it says of the exchange between its GPUs.
TEST(TopologyMatrix, OfADgx1PredictsAsTheCataloguesFile) {
  const test::TempDir dir;
  ASSERT_EQ(test::run({"import", import_file("topo_dgx1.txt"), "--gpu", "v100_sxm2_16gb", "-o",
                       dir.path().string()})
                .exit_code,
            0);
  const std::string path = (dir.path() / "topo_dgx1.yaml").string();
  const MachineSpec machine = read_machine(path, test::source_specs().catalog());
  EXPECT_EQ(nvlinks_between(machine, 0, 3), 2);
  EXPECT_EQ(nvlinks_between(machine, 0, 5), 0);
  EXPECT_THAT(machine.root_ports[1].gpus, ElementsAre(2, 3));  // by the network card that both are near
  const auto scaling = [](const std::string& name) {
    return test::run({"scaling", "resnet50:pytorch", "--machine", name, "--batch", "32", "--gpus", "1,2,4,8",
                      "--format", "csv"})
        .out;
  };
  EXPECT_EQ(scaling(path), scaling("dgx1_v100"));
}

TEST(TopologyMatrix, FindsASwitchOfNvlinks) {
  const MachineSpec machine = imported("topo_h100.txt");
  EXPECT_EQ(machine.gpu, "h100_sxm");  // stands for one of 18 links
  ASSERT_TRUE(machine.nvlink);
  EXPECT_EQ(machine.nvlink->to_switch, 18);
  EXPECT_EQ(machine.root_ports.size(), 8u);
}

TEST(TopologyMatrix, IsSquareAndSymmetric) {
  const auto message = [](const std::string& text) {
    return test::message_of<SpecError>([&] { (void)read_topology_matrix(text, "t"); });
  };
  EXPECT_THAT(message("\tGPU0\tGPU1\tCPU Affinity\nGPU0\tX\tPIX\t0\n"), HasSubstr("1 rows for 2 GPUs"));
  EXPECT_THAT(message("\tGPU0\tGPU1\nGPU0\tX\tPIX\nGPU1\tSYS\tX\n"), HasSubstr("one way for a pair"));
  EXPECT_THAT(message("\tGPU0\tGPU1\nGPU0\tX\tPIY\nGPU1\tPIY\tX\n"),
              HasSubstr("t:2:1: 'PIY'; expected X, NV<links>"));
  EXPECT_THAT(message("nothing"), HasSubstr("expected a matrix of nvidia-smi topo -m"));
}

TEST(TopologyMatrix, RefusesLinksThatTheGpuHasNot) {
  const test::CliResult result = test::run({"import", import_file("topo_h100.txt"), "--gpu", "rtx4090"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("joined by NVLink, which NVIDIA GeForce RTX 4090 has not"));
}

TEST(Lspci, TellsRootPortsAndNames) {
  const MachineSpec machine = imported("lspci_4x1080ti.txt");
  EXPECT_EQ(machine.gpu, "gtx1080ti");
  ASSERT_EQ(machine.root_ports.size(), 2u);
  EXPECT_THAT(machine.root_ports[0].gpus, ElementsAre(0, 1));
  EXPECT_EQ(machine.root_ports[0].socket, 1);  // buses from 80 on
  EXPECT_EQ(machine.root_ports[1].socket, 0);
}

TEST(Hwloc, TellsSocketsMemoryAndNvlinks) {
  const MachineSpec machine = imported("hwloc_2xp100.xml");
  EXPECT_EQ(machine.gpu, "p100_sxm2");
  EXPECT_EQ(machine.sockets, 2);
  EXPECT_EQ(machine.cpu.name, "xeon_gold_6230");
  EXPECT_EQ(machine.memory_size.si(), 256.0 * 1073741824);
  EXPECT_EQ(nvlinks_between(machine, 0, 1), 2);  // 40 GB/s of 20 GB/s each
  EXPECT_EQ(machine.root_ports[1].socket, 1);
}

// A machine of several files: its GPU is the one that the other file describes.
TEST(MachineImport, TakesItsGpuFromAnotherFile) {
  const test::TempDir dir;
  const test::CliResult result = test::run(
      {"import", import_file("smi_query.csv"), import_file("topo_4090.txt"), "-o", dir.path().string()});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const MachineSpec machine = read_machine(dir.path() / "topo_4090.yaml", test::source_specs().catalog());
  EXPECT_THAT(machine.gpu, HasSubstr("a100_sxm_40gb.yaml"));
}

// A processor that the catalogue has not: one of its maker stands for it, with the most similar number of
// cores. 7V12 has 48 cores and 7742 64; of Intel's, Gold 5118 has 12 and E5-2686 v4 18.
TEST(MachineImport, AnUnknownProcessorIsReplacedByOneOfItsMaker) {
  const test::TempDir dir;
  const auto imported = [&](const std::string& cpu, int cores) {
    std::string package = "<object type=\"Package\">" + cpu;
    for (int i = 0; i < cores; ++i) package += "<object type=\"Core\"/>";
    const auto file = dir.write("t.xml", "<topology><object type=\"Machine\">" + package +
                                             "<object type=\"PCIDev\" pci_type=\"0302 [10de:1]\"/></object>"
                                             "<object type=\"Package\"/></object></topology>");
    return test::run({"import", file.string(), "--gpu", "h100_pcie"}).out;
  };
  const auto model = [](const char* name) { return fmt::format("<info name='CPUModel' value='{}'/>", name); };
  const std::string genoa = imported(model("AMD EPYC 9654 96-Core Processor"), 192);
  EXPECT_THAT(genoa,
              AllOf(HasSubstr("# "), HasSubstr("'AMD EPYC 9654 96-Core Processor', not of the catalogue, 96 "
                                               "cores a socket: epyc_7742 stands for it")));
  EXPECT_THAT(genoa, AllOf(HasSubstr("\ncpu: epyc_7742\n"), HasSubstr("link: xgmi2"), HasSubstr("count: 3")));
  EXPECT_THAT(imported(model("AMD Ryzen Threadripper PRO 5975WX 32-Cores"), 0),
              HasSubstr("\ncpu: epyc_7742\n"));
  EXPECT_THAT(imported(model("Intel(R) Xeon(R) Silver 4310 CPU @ 2.10GHz"), 24),
              AllOf(HasSubstr("\ncpu: xeon_gold_5118\n"), HasSubstr("link: upi")));
  EXPECT_THAT(imported("<info name='CPUImplementer' value='0x41'/><info name='CPUPart' value='0xd4f'/>", 144),
              AllOf(HasSubstr("'ARM part 0xd4f', not of the catalogue"), HasSubstr("\ncpu: grace\n")));
  EXPECT_THAT(imported("", 0), AllOf(HasSubstr("the CPU is not named: xeon_gold_6230"), HasSubstr("upi")));
}

// EPYC with four NUMA nodes a socket: cores 0 to 63 are of the first socket, those from 64 on of the second.
// The marks of the underlined header are copied along.
TEST(TopologyMatrix, NumaNodesAreNoSockets) {
  const MachineFacts facts = read_topology_matrix(
      "[4m\tGPU0\tGPU1\tGPU2\tCPU Affinity\tNUMA Affinity[0m\n"
      "GPU0\t X \tNV12\tNV12\t112-127,240-255\t7\nGPU1\tNV12\t X \tNV12\t48-63,176-191\t3\n"
      "GPU2\tNV12\tNV12\t X \t16-31,144-159\t1\n",
      "t.txt");
  EXPECT_EQ(facts.sockets, 2);
  EXPECT_THAT(facts.sockets_by, HasSubstr("3 NUMA nodes"));
  EXPECT_EQ(facts.slots[1].socket, facts.slots[2].socket == 0 ? 0 : 1);
  EXPECT_NE(facts.slots[0].socket, facts.slots[2].socket);
}

// A card for screens beside those for work, in a machine whose host bridges are AMD's.
TEST(Lspci, NamesDifferentCardsAndAmdsProcessors) {
  const test::TempDir dir;
  const auto file =
      dir.write("l.txt",
                "-+-[0000:60]---01.0-[61]----00.0  NVIDIA Corporation GA100 [A100 PCIe 40GB]\n"
                " \\-[0000:00]-+-00.0  Advanced Micro Devices, Inc. [AMD] Starship/Matisse Root Complex\n"
                "             \\-01.1-[01]----00.0  NVIDIA Corporation GA102 [GeForce RTX 3090]\n");
  const test::CliResult result = test::run({"import", file.string()});
  EXPECT_THAT(result.out + result.err,
              AllOf(HasSubstr("GPUs differ (A100 PCIe 40GB, GeForce RTX 3090)"),
                    HasSubstr("all are taken as a100_pcie_40gb"), HasSubstr("\ncpu: epyc_7742\n")));
}

}  // namespace
}  // namespace tbdsim
