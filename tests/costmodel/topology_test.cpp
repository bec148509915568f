#include "costmodel/communication/topology.h"

#include <gtest/gtest.h>

#include "costmodel/communication/nvlink_rings.h"
#include "hwspecs/base/error.h"
#include "hwspecs/synthetic_machine.h"

namespace tbdsim {
namespace {

const Catalog& catalog() {
  static const Catalog all = Catalog::from(TBDSIM_SOURCE_DIR);
  return all;
}
GpuSpec gpu(const char* name) { return read_gpu(catalog().find(Kind::gpu, name), catalog()); }
MachineSpec machine(const char* name) { return read_machine(catalog().find(Kind::machine, name), catalog()); }

double ring_rate(const char* card, int gpus, const char* word) {
  const GpuSpec spec = gpu(card);
  const MachineSpec plain = synthesize_machine(spec, gpus, word, catalog());
  return Topology(plain, spec, gpus).rings().bandwidth.si();
}

// Rings of 23.25 GB/s that fit into the cube mesh of a DGX-1. NCCL's all-reduce on it reaches 23, 45, 86, 37,
// 46, 87 and 135 GB/s with 2 to 8 V100: 1, 2, 4, none, 2, 4 and 6 rings. Among five there is a chain.
TEST(Topology, RingsOfADgx1) {
  const MachineSpec dgx1 = machine("dgx1_v100");
  const int rings[] = {1, 2, 4, 0, 2, 4, 6};
  const double measured[] = {23, 45, 86, 37, 46, 87, 135};
  const GpuSpec v100 = gpu("v100_sxm2_16gb");
  for (int gpus = 2; gpus <= 8; ++gpus) {
    EXPECT_EQ(nvlink_rings(*dgx1.nvlink, gpus), rings[gpus - 2]) << gpus;
    EXPECT_NEAR(Topology(dgx1, v100, gpus).rings().bandwidth.si() / 1e9 / measured[gpus - 2], 1, 0.09)
        << gpus;
  }
  EXPECT_TRUE(nvlink_chain(*dgx1.nvlink, 5));
}

// NCCL 1 does not use the mesh: one ring in the order of the slots, which crosses the sockets of a DGX-1
// where no NVLink does; two neighbours have theirs.
TEST(Topology, OneRingInTheOrderOfTheSlots) {
  const MachineSpec dgx1 = machine("dgx1_p100");
  const GpuSpec p100 = gpu("p100_sxm2");
  const Rings two = Topology(dgx1, p100, 2).single_ring();
  EXPECT_TRUE(two.nvlink);
  EXPECT_DOUBLE_EQ(two.bandwidth.si(), achievable(dgx1.nvlink->link).si());
  const Rings eight = Topology(dgx1, p100, 8).single_ring();
  EXPECT_FALSE(eight.nvlink);
  EXPECT_EQ(eight.traffic.flows.size(), 2u);  // from GPU 3 to 4 and from 7 to 0
  EXPECT_LT(eight.bandwidth, achievable(p100.bus));
  EXPECT_GT(Topology(dgx1, p100, 8).rings().bandwidth, eight.bandwidth * 3.0);
  const MachineSpec slots = machine("titanxp_4x");
  const Topology titans(slots, gpu("titanxp"), 4);
  EXPECT_DOUBLE_EQ(titans.single_ring().bandwidth.si(), titans.rings().bandwidth.si());
}

// Four cards below one port stage through its one link, which four transfers share; below four ports each has
// its own; peers below one switch do not leave it.
TEST(Topology, PortsAreShared) {
  EXPECT_NEAR(ring_rate("rtx2080ti", 4, "pcie3_host") / ring_rate("rtx2080ti", 4, "pcie3_host_1root"), 3.4,
              0.7);
  EXPECT_NEAR(ring_rate("titanxp", 2, "pcie3_1root"), 15.754e9 * 0.78, 1e7);
  EXPECT_GT(ring_rate("titanxp", 4, "pcie3_1root"), 3 * ring_rate("titanxp", 4, "pcie3_host_1root"));
}

// Over two ports of one socket and over two sockets, as the slot's file says; not below one port.
TEST(Topology, PeersAcrossPorts) {
  const LinkSpec slot = gpu("h100_pcie").bus;
  const double two = ring_rate("h100_pcie", 2, "pcie5_1root");
  EXPECT_DOUBLE_EQ(two, achievable(slot).si());
  EXPECT_NEAR(ring_rate("h100_pcie", 8, "pcie5_1root"), two * slot.across_ports, 1);
  EXPECT_NEAR(ring_rate("h100_pcie", 8, "pcie5"), two * slot.across_sockets, 1);
}

// A copy by the driver that host memory takes in turns, in and then out, has half of the slot's 12.29 GB/s;
// one between peers all of it, and three copies into one card a third each.
TEST(Topology, CopiesByTheDriver) {
  const GpuSpec card = gpu("titanxp");
  const auto slowest = [&](const char* word, int gpus) {
    return Topology(synthesize_machine(card, gpus, word, catalog()), card, gpus).to_first_gpu().slowest.si();
  };
  const double slot = 15.754e9 * 0.78;
  EXPECT_NEAR(slowest("pcie3", 2), slot, 1e3);
  EXPECT_NEAR(slowest("pcie3_host", 2), slot / 2, 1e3);
  EXPECT_NEAR(slowest("pcie3_host", 4), slot / 2 / 3, 1e3);
}

// Copies staged in host memory are marked.
TEST(Topology, StagedRings) {
  for (const auto& [word, staged] : {std::pair("pcie3", false), std::pair("pcie3_host", true)}) {
    const GpuSpec card = gpu("titanxp");
    EXPECT_EQ(Topology(synthesize_machine(card, 2, word, catalog()), card, 2).rings().staged, staged) << word;
  }
}

TEST(Topology, BridgesTakeLoadOffThePort) {
  EXPECT_GT(ring_rate("rtx2080ti", 4, "nvlink_pairs_host_1root"),
            ring_rate("rtx2080ti", 4, "pcie3_host_1root"));
  EXPECT_NEAR(ring_rate("rtx2080ti", 2, "nvlink_pairs_host"), 2 * 25e9 * 0.93, 1e7);
}

TEST(Topology, SwitchesGiveEveryGpuAllItsLinks) {
  EXPECT_NEAR(ring_rate("a100_sxm_80gb", 8, "nvlink"), 12 * 25e9 * 0.91, 1e7);
  EXPECT_DOUBLE_EQ(ring_rate("a100_sxm_80gb", 2, "nvlink"), ring_rate("a100_sxm_80gb", 8, "nvlink"));
}

// Neighbours in a mesh copy over their wires, others over PCI Express, which holds all back.
TEST(Topology, CopiesBetweenNeighboursInAMesh) {
  const MachineSpec dgx1 = machine("dgx1_v100");
  const GpuSpec v100 = gpu("v100_sxm2_16gb");
  const double wire = achievable(dgx1.nvlink->link).si();
  EXPECT_DOUBLE_EQ(Topology(dgx1, v100, 4).all_to_all().slowest.si(), wire);
  EXPECT_LT(Topology(dgx1, v100, 8).all_to_all().slowest.si(), wire / 4);
  EXPECT_DOUBLE_EQ(Topology(dgx1, v100, 2).to_first_gpu().slowest.si(), wire);
}

TEST(Topology, AllAtOnceToTheHost) {
  const GpuSpec card = gpu("titanxp");
  const MachineSpec one_port = synthesize_machine(card, 4, "pcie3_1root", catalog());
  EXPECT_NEAR(Topology(one_port, card, 4).to_host().slowest.si(), 15.754e9 * 0.78 / 4, 1e6);
  const MachineSpec four_ports = synthesize_machine(card, 4, "pcie3", catalog());
  EXPECT_NEAR(Topology(four_ports, card, 4).from_host().slowest.si(), 15.754e9 * 0.78, 1e7);
}

TEST(Topology, MoreGpusThanThereAre) {
  const MachineSpec dgx1 = machine("dgx1_v100");
  EXPECT_THROW(Topology(dgx1, gpu("v100_sxm2_16gb"), 9), UsageError);
}

// A mesh too dense to try every ring of ends all the same.
TEST(Topology, DenseMeshesEnd) {
  NvLink mesh;
  for (int a = 0; a < 8; ++a) {
    for (int b = a + 1; b < 8; ++b) mesh.pairs.push_back({a, b, 2});
  }
  EXPECT_GE(nvlink_rings(mesh, 8), 10);
  EXPECT_LE(nvlink_rings(mesh, 8), 14);
  EXPECT_EQ(nvlink_rings(mesh, 1000), 0);
}

}  // namespace
}  // namespace tbdsim
