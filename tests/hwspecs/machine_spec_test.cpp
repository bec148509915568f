#include "hwspecs/machine_spec.h"

#include <fstream>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hwspecs/gpu_spec.h"
#include "tests/support/temp_dir.h"

namespace tbdsim {
namespace {
namespace fs = std::filesystem;
using testing::ElementsAre;

constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;

Catalog source_catalog() { return Catalog::from(TBDSIM_SOURCE_DIR); }

MachineSpec catalogue_machine(const char* name) {
  return read_machine(source_catalog().find(Kind::machine, name), source_catalog());
}

// NVLinks of one GPU to all others.
int nvlinks_of(const MachineSpec& machine, int gpu) {
  int links = 0;
  for (int other = 0; other < machine.gpus; ++other) links += nvlinks_between(machine, gpu, other);
  return links;
}

TEST(MachineSpec, EveryFileOfTheCatalogueLoads) {
  const Catalog catalog = source_catalog();
  for (const std::string& name : catalog.names(Kind::machine)) {
    SCOPED_TRACE(name);
    const MachineSpec machine = read_machine(catalog.find(Kind::machine, name), catalog);
    EXPECT_EQ(machine.name, name);
    const GpuSpec gpu = read_gpu(catalog.find(Kind::gpu, machine.gpu), catalog);
    for (const RootPort& port : machine.root_ports) EXPECT_EQ(port.of_slots().name, gpu.bus.name);
    if (!machine.nvlink) continue;
    ASSERT_TRUE(gpu.nvlink.has_value());
    EXPECT_EQ(machine.nvlink->link.name, gpu.nvlink->link.name);
    EXPECT_LE(machine.nvlink->to_switch, gpu.nvlink->count);
    if (machine.nvlink->to_switch > 0) continue;
    for (int i = 0; i < machine.gpus; ++i)
      EXPECT_LE(nvlinks_of(machine, i), gpu.nvlink->count) << "GPU " << i;
  }
}

// Section IV and Table IV of the TBD paper: 8 machines of up to four P4000, 28 cores and 128 GB in each,
// Ethernet of 1 Gbit/s and InfiniBand of 100 Gbit/s between them.
TEST(MachineSpec, TbdClusterIsThatOfThePaper) {
  const MachineSpec machine = catalogue_machine("tbd_p4000");
  EXPECT_EQ(machine.gpu, "p4000");
  EXPECT_EQ(machine.gpus, 4);
  EXPECT_EQ(machine.machines, 8);
  EXPECT_EQ(machine.cpu.core_count * machine.sockets, 28);
  EXPECT_EQ(machine.memory_size, Bytes(128 * kGiB));
  ASSERT_EQ(machine.networks.size(), 2u);
  EXPECT_EQ(machine.networks[0].link.name, "ethernet_1g");
  EXPECT_EQ(machine.networks[1].link.name, "infiniband_100g");
  EXPECT_DOUBLE_EQ(host_memory_bandwidth(machine).si(), 2 * 76.8e9);
}

// The cube meshes of the DGX-1: every GPU uses all its links, 4 of P100 and 6 of V100, and each has one
// neighbour on the other board (0 and 4, 1 and 5, ...).
TEST(MachineSpec, CubeMeshesUseAllLinks) {
  for (const auto& [name, links] : {std::pair{"dgx1_p100", 4}, {"dgx1_v100", 6}, {"aws_p3_16xlarge", 6}}) {
    SCOPED_TRACE(name);
    const MachineSpec machine = catalogue_machine(name);
    ASSERT_EQ(machine.gpus, 8);
    for (int a = 0; a < 8; ++a) {
      EXPECT_EQ(nvlinks_of(machine, a), links) << "GPU " << a;
      int neighbours = 0;
      for (int b = 0; b < 8; ++b) {
        const bool own_board = a / 4 == b / 4;
        const bool joined = nvlinks_between(machine, a, b) > 0;
        EXPECT_EQ(joined, a != b && (own_board || a % 4 == b % 4)) << a << " and " << b;
        neighbours += joined ? 1 : 0;
      }
      EXPECT_EQ(neighbours, 4);
    }
  }
}

TEST(MachineSpec, ASwitchJoinsAllGpus) {
  const MachineSpec machine = catalogue_machine("dgx_a100");
  EXPECT_EQ(nvlinks_between(machine, 0, 7), 12);
  EXPECT_EQ(nvlinks_between(machine, 3, 3), 0);
  EXPECT_THAT(machine.networks.front().below, ElementsAre(0, 0, 1, 1, 2, 2, 3, 3));
}

// Adapters of 100 GB/s have switches of PCIe 6.0, whose way up is PCIe 5.0 with 63 GB/s.
TEST(MachineSpec, SlotsBelowFasterSwitches) {
  const MachineSpec machine = catalogue_machine("dgx_b300");
  const RootPort& port = root_port_of(machine, 5);
  EXPECT_EQ(port.link.name, "pcie5");
  EXPECT_EQ(port.of_slots().name, "pcie6");
  EXPECT_GT(port.of_slots().bandwidth, machine.networks.front().link.bandwidth);
  EXPECT_EQ(root_port_of(catalogue_machine("dgx_b200"), 5).of_slots().name, "pcie5");
}

// Eighteen trays of four GPUs; two GPUs share the bus to their processor.
TEST(MachineSpec, ARackThatNvLinkJoins) {
  const MachineSpec machine = catalogue_machine("gb200_nvl72");
  EXPECT_EQ(machine.gpus, 72);
  EXPECT_EQ(machine.sockets, 36);
  EXPECT_EQ(nvlinks_between(machine, 0, 71), 18);
  EXPECT_EQ(root_port_of(machine, 71).socket, 35);
  EXPECT_THAT(root_port_of(machine, 71).gpus, ElementsAre(70, 71));
  EXPECT_EQ(machine.networks.front().below.size(), 72u);
  const MachineSpec later = catalogue_machine("gb300_nvl72");
  EXPECT_EQ(later.networks.front().below, machine.networks.front().below);
  EXPECT_EQ(later.networks.front().link.bandwidth, machine.networks.front().link.bandwidth * 2);
}

// The file valid_machine.yaml of tests/bad_specs: GPUs 0 and 1 below one socket, joined by 2 links; 2 and 3
// below another, joined by 1.
class ChangedMachine : public testing::Test {
 protected:
  MachineSpec with(const std::string& from, const std::string& to) {
    std::ostringstream content;
    content << std::ifstream(fs::path(TBDSIM_SOURCE_DIR) / "tests/bad_specs/valid_machine.yaml").rdbuf();
    std::string yaml = content.str();
    const std::size_t at = yaml.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return read_machine(directory_.write("machine.yaml", yaml.replace(at, from.size(), to)),
                        source_catalog());
  }
  MachineSpec with_peers(const std::string& peers) {
    MachineSpec machine = with("peer_access: socket", "peer_access: " + peers);
    machine.nvlink.reset();
    return machine;
  }

  test::TempDir directory_;
};

TEST_F(ChangedMachine, PeersReachAsFarAsTheFileSays) {
  for (const auto& [peers, near, far] : {std::tuple{"none", false, false},
                                         {"switch", true, false},
                                         {"socket", true, false},
                                         {"machine", true, true}}) {
    const MachineSpec machine = with_peers(peers);
    EXPECT_EQ(are_peers(machine, 0, 1), near) << peers;
    EXPECT_EQ(are_peers(machine, 1, 2), far) << peers;
  }
}

// Two root ports of one socket: peers below the socket, but not below one switch.
TEST_F(ChangedMachine, ASocketIsMoreThanASwitch) {
  MachineSpec machine = with_peers("socket");
  machine.root_ports[1].socket = 0;
  EXPECT_TRUE(are_peers(machine, 1, 2));
  machine.peer_access = PeerAccess::switch_only;
  EXPECT_FALSE(are_peers(machine, 1, 2));
}

TEST_F(ChangedMachine, NvLinkNeighboursAreAlwaysPeers) {
  const MachineSpec machine = with("peer_access: socket", "peer_access: none");
  EXPECT_TRUE(are_peers(machine, 3, 2));
  EXPECT_FALSE(are_peers(machine, 1, 2));
  EXPECT_EQ(nvlinks_between(machine, 1, 0), 2);
  EXPECT_EQ(nvlinks_between(machine, 1, 2), 0);
  EXPECT_EQ(root_port_of(machine, 3).socket, 1);
}

// Paths in a machine's file count from its folder.
TEST_F(ChangedMachine, PathsCountFromTheFile) {
  directory_.write("my_link.yaml",
                   "title: Mine\nkind: pcie\nbandwidth: 40 GB/s\nefficiency: 0.5\nlatency: 1 us\n"
                   "sources: {bandwidth: x, efficiency: x, latency: x}\n");
  const MachineSpec machine = with("{link: pcie3, socket: 0", "{link: ./my_link.yaml, socket: 0");
  EXPECT_DOUBLE_EQ(achievable(machine.root_ports[0].link).si(), 20e9);
  fs::copy_file(source_catalog().find(Kind::gpu, "v100_sxm2_16gb"), directory_.path() / "my_card.yaml");
  EXPECT_EQ(with("gpu: v100_sxm2_16gb", "gpu: ./my_card.yaml").gpu,
            (directory_.path() / "./my_card.yaml").string());
}

TEST_F(ChangedMachine, WhatIsOptionalMayBeAbsent) {
  const std::string file =
      "title: Box\ngpu: titanxp\ngpus: 1\ncpu: xeon_e5_2680\nsockets: 1\nmemory_size: 64 GiB\n"
      "root_ports: [{link: pcie3, socket: 0, gpus: [0]}]\npeer_access: none\n"
      "sources: {gpus: x, sockets: x, memory_size: x, root_ports: x, peer_access: x}\n";
  const MachineSpec box = read_machine(directory_.write("box.yaml", file), source_catalog());
  EXPECT_EQ(box.name, "box");
  EXPECT_FALSE(box.nvlink || box.socket_link || box.machines);
  EXPECT_TRUE(box.networks.empty());
}

}  // namespace
}  // namespace tbdsim
