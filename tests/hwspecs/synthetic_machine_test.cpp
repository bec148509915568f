#include "hwspecs/synthetic_machine.h"

#include <set>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hwspecs/base/error.h"
#include "tests/hwspecs/message_of.h"
#include "tests/support/temp_catalog.h"

namespace tbdsim {
namespace {
using testing::ElementsAre;
using testing::HasSubstr;

MachineSpec plain(const char* gpu, int gpus, const std::string& word) {
  const Catalog catalog = Catalog::from(TBDSIM_SOURCE_DIR);
  return synthesize_machine(read_gpu(catalog.find(Kind::gpu, gpu), catalog), gpus, word, catalog);
}

std::string refusal(const char* gpu, int gpus, const std::string& word) {
  return test::message_of<UsageError>([&] { (void)plain(gpu, gpus, word); });
}

// The server has two slots below each root port and two ports on each socket; as few cards share one as can.
TEST(SyntheticMachine, SlotsWithPeers) {
  const MachineSpec machine = plain("titanxp", 3, "pcie3");
  EXPECT_EQ(machine.title, "3 x NVIDIA TITAN Xp, pcie3");
  EXPECT_EQ(machine.gpu, "titanxp");
  EXPECT_EQ(machine.gpus, 3);
  ASSERT_EQ(machine.root_ports.size(), 3u);
  EXPECT_THAT(machine.root_ports[0].gpus, ElementsAre(0));
  EXPECT_THAT(machine.root_ports[2].gpus, ElementsAre(2));
  const MachineSpec six = plain("titanxp", 6, "pcie3");
  ASSERT_EQ(six.root_ports.size(), 4u);
  EXPECT_THAT(six.root_ports[1].gpus, ElementsAre(1, 2));
  EXPECT_THAT(six.root_ports[3].gpus, ElementsAre(4, 5));
  EXPECT_TRUE(are_peers(machine, 0, 2));
  EXPECT_FALSE(machine.nvlink.has_value());
}

TEST(SyntheticMachine, HostStagesAndOneRootShares) {
  const MachineSpec machine = plain("rtx2080ti", 6, "pcie3_host_1root");
  EXPECT_FALSE(are_peers(machine, 0, 1));
  ASSERT_EQ(machine.root_ports.size(), 2u);
  EXPECT_THAT(machine.root_ports[0].gpus, ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(machine.root_ports[1].gpus, ElementsAre(4, 5));
  EXPECT_EQ(machine.root_ports[1].socket, 0);
}

TEST(SyntheticMachine, NvLinkOfAllAndOfPairs) {
  EXPECT_EQ(nvlinks_between(plain("v100_sxm3_32gb", 4, "nvlink"), 0, 3), 6);
  EXPECT_EQ(nvlinks_between(plain("gb200", 4, ""), 0, 3), 18);
  const MachineSpec bridged = plain("rtx2080ti", 4, "nvlink_pairs_host");
  EXPECT_EQ(nvlinks_between(bridged, 2, 3), 2);
  EXPECT_EQ(nvlinks_between(bridged, 1, 2), 0);
  EXPECT_FALSE(are_peers(bridged, 1, 2));
  EXPECT_EQ(plain("rtx3090", 3, "nvlink_pairs_host").nvlink->pairs.size(), 1u);  // the third has no partner
  EXPECT_EQ(plain("rtx2080ti", 4, "nvlink_pairs_host_1root").root_ports.size(), 1u);
}

// No switch takes SXM2 boards: they are wired as in a DGX-1.
TEST(SyntheticMachine, BoardsThatAreWiredInPairs) {
  const MachineSpec eight = plain("v100_sxm2_32gb", 8, "nvlink");
  EXPECT_EQ(eight.title, "8 x NVIDIA Tesla V100 SXM2 32 GB, nvlink");
  EXPECT_EQ(eight.gpu, "v100_sxm2_32gb");
  EXPECT_EQ(eight.nvlink->to_switch, 0);
  EXPECT_EQ(nvlinks_between(eight, 0, 3), 2);
  EXPECT_EQ(nvlinks_between(eight, 0, 5), 0);
  EXPECT_FALSE(are_peers(eight, 0, 5));
  EXPECT_TRUE(eight.networks.empty());
  EXPECT_EQ(nvlinks_between(plain("p100_sxm2", 2, ""), 0, 1), 1);
  EXPECT_THAT(refusal("v100_sxm2_16gb", 9, "nvlink"), HasSubstr("9 GPUs in one machine; expected 1 to 8"));
  EXPECT_EQ(plain("v100_sxm2_16gb", 2, "nvlink_pairs_host").nvlink->pairs.front().links, 6);
}

// Ten cards on eight ports: two ports have two behind a switch, as 10 / 8 spreads them.
TEST(SyntheticMachine, MoreCardsThanPortsShareThem) {
  const MachineSpec ten = plain("a100_pcie_80gb", 10, "");
  ASSERT_EQ(ten.root_ports.size(), 8u);
  std::size_t most = 0, all = 0;
  for (const RootPort& port : ten.root_ports) {
    most = std::max(most, port.gpus.size());
    all += port.gpus.size();
  }
  EXPECT_EQ(most, 2u);
  EXPECT_EQ(all, 10u);
  EXPECT_THAT(refusal("a100_pcie_80gb", 33, ""), HasSubstr("expected 1 to 32"));
}

// An empty word means boards where GPUs sit on boards, and slots elsewhere; bridges are extra.
TEST(SyntheticMachine, WithoutAWord) {
  EXPECT_EQ(plain("h100_sxm", 8, "").nvlink->to_switch, 18);
  EXPECT_FALSE(plain("a100_pcie_40gb", 2, "").nvlink.has_value());
  EXPECT_EQ(plain("a100_pcie_40gb", 2, "").root_ports[0].link.name, "pcie4");
  EXPECT_EQ(plain("p4000", 1, "").title, "1 x NVIDIA Quadro P4000");
  EXPECT_EQ(plain("a100_pcie_40gb", 2, "pcie3").root_ports[0].link.name, "pcie3");
}

TEST(SyntheticMachine, NetworksJoinSuchMachines) {
  const MachineSpec machine = plain("v100_sxm2_16gb", 8, "infiniband_100g");
  EXPECT_EQ(machine.networks.front().link.name, "infiniband_100g");
  EXPECT_EQ(machine.nvlink->pairs.size(), 16u);
  EXPECT_FALSE(plain("p100_pcie", 4, "ethernet_25g").nvlink.has_value());
}

// Every word of the tables of measured runs.
TEST(SyntheticMachine, KnowsTheWordsOfMeasuredRuns) {
  for (const char* word : {"pcie3", "pcie4", "pcie5", "pcie3_host", "pcie4_host", "pcie5_host", "pcie3_1root",
                           "pcie3_host_1root", "nvlink", "nvlink_pairs_host", "nvlink_pairs_host_1root",
                           "ethernet_10g", "ethernet_25g", "ethernet_40g", "infiniband_100g"}) {
    EXPECT_EQ(plain("rtx2080ti", 4, word).name, word);
  }
}

// Every word that a refusal lists is accepted; with its endings reversed or doubled it is not.
TEST(SyntheticMachine, RefusalsNameEveryWord) {
  const std::string message = refusal("rtx2080ti", 4, "wifi");
  const std::size_t start = message.find("expected one of ") + std::string("expected one of ").size();
  std::istringstream words(message.substr(start));
  std::set<std::string> known;
  for (std::string word; words >> word;) {
    if (word.back() == ',') word.pop_back();
    known.insert(word);
    EXPECT_EQ(plain("rtx2080ti", 4, word).name, word);
  }
  const std::string ways[] = {"pcie3", "nvlink", "ethernet_25g"};
  const std::string endings[] = {"", "_pairs", "_host", "_1root"};
  for (const std::string& way : ways) {
    for (const std::string& first : endings) {
      for (const std::string& second : endings) {
        for (const std::string& third : endings) {
          const std::string word = way + first + second + third;
          if (known.contains(word)) continue;
          EXPECT_THAT(refusal("rtx2080ti", 4, word), testing::StartsWith("unknown network")) << word;
        }
      }
    }
  }
}

// A link is a network by its kind, not by its name; a slot by its kind and the server that is assumed for it.
TEST(SyntheticMachine, LinksAreKnownByTheirKind) {
  const test::TempCatalog own(Kind::link);
  own.add("roce_100g",
          "title: RoCE\nkind: network\nbandwidth: 100 Gbit/s\nefficiency: 0.9\nlatency: 3 us\n"
          "sources: {bandwidth: a test, efficiency: a test, latency: a test}\n");
  own.add("pcie9",
          "title: No such slot\nkind: pcie\nbandwidth: 100 GB/s\nefficiency: 0.9\nlatency: 3 us\n"
          "sources: {bandwidth: a test, efficiency: a test, latency: a test}\n");
  own.add("ethernet_local",
          "title: Between sockets\nkind: socket\nbandwidth: 100 GB/s\nefficiency: 0.9\nlatency: 3 us\n"
          "sources: {bandwidth: a test, efficiency: a test, latency: a test}\n");
  const Catalog catalog = own.catalog();
  const GpuSpec gpu = read_gpu(catalog.find(Kind::gpu, "p4000"), catalog);
  const MachineSpec machine = synthesize_machine(gpu, 1, "roce_100g", catalog);
  EXPECT_EQ(machine.networks.front().link.title, "RoCE");
  EXPECT_EQ(machine.root_ports.front().link.name, "pcie3");
  EXPECT_EQ(kind_of_link("roce_100g", catalog), LinkKind::network);
  EXPECT_EQ(kind_of_link("roce_800g", catalog), std::nullopt);
  const auto refused = [&](const std::string& word) {
    return test::message_of<UsageError>([&] { (void)synthesize_machine(gpu, 1, word, catalog); });
  };
  EXPECT_THAT(refused("roce_10g"), testing::EndsWith("; did you mean 'roce_100g'?"));
  for (const char* word : {"pcie9", "ethernet_local", "roce_100g_host"})
    EXPECT_THAT(refused(word), testing::StartsWith("unknown network '" + std::string(word) + "'"));
}

TEST(SyntheticMachine, Refusals) {
  EXPECT_EQ(refusal("titanxp", 2, "nvlink"),
            "NVIDIA TITAN Xp has no NVLink; expected a network over PCIe, such as pcie3");
  EXPECT_EQ(refusal("titanxp", 17, "pcie3"), "17 GPUs in one machine; expected 1 to 16, or a machine's file");
  for (const char* word :
       {"pcie6", "pcie3_pairs", "ethernet_25g_host", "_host", "qpi", "nvlink3", "../pcie3"}) {
    EXPECT_THAT(refusal("titanxp", 2, word), testing::StartsWith("unknown network '" + std::string(word)))
        << word;
  }
  EXPECT_THAT(refusal("titanxp", 2, "pcie3_hst"), testing::EndsWith("; did you mean 'pcie3_host'?"));
}

}  // namespace
}  // namespace tbdsim
