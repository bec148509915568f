#include "hwspecs/link_spec.h"

#include <gmock/gmock.h>

#include "hwspecs/base/catalog.h"
#include "hwspecs/base/error.h"
#include "tests/hwspecs/message_of.h"

namespace tbdsim {
namespace {

LinkSpec catalogue_link(const std::string& name) {
  return read_link(Catalog::from(TBDSIM_SOURCE_DIR).find(Kind::link, name));
}

// A lane of PCIe 3.0 carries 8 GT/s, 128 of 130 bits of it data: 16 lanes x 8e9 x 128/130 / 8 = 15.754 GB/s.
// Each generation doubles that.
TEST(LinkSpec, PcieDoublesWithEachGeneration) {
  const double pcie3 = 16 * 8e9 * 128 / 130 / 8;
  EXPECT_NEAR(catalogue_link("pcie3").bandwidth.si() / pcie3, 1, 1e-4);
  EXPECT_NEAR(catalogue_link("pcie4").bandwidth.si() / (2 * pcie3), 1, 1e-4);
  EXPECT_NEAR(catalogue_link("pcie5").bandwidth.si() / (4 * pcie3), 1, 1e-4);
}

TEST(LinkSpec, NetworksHaveTheRateOfTheirName) {
  for (const int gbit : {1, 10, 25, 40, 100}) {
    const LinkSpec link = catalogue_link("ethernet_" + std::to_string(gbit) + "g");
    EXPECT_DOUBLE_EQ(link.bandwidth.si(), gbit * 0.125e9) << link.name;
  }
  for (const int gbit : {100, 200, 400}) {
    const LinkSpec link = catalogue_link("infiniband_" + std::to_string(gbit) + "g");
    EXPECT_DOUBLE_EQ(link.bandwidth.si(), gbit * 0.125e9) << link.name;
  }
}

// Bandwidths quoted for whole GPUs, both directions together: 160 GB/s over 4 links of P100, 300 over 6 of
// V100, 600 over 12 of A100, 112.5 over 4 of GA102, 900 over 18 of H100, 1800 over 18 of B200.
TEST(LinkSpec, NvLinksAddUpToWhatGpusAreQuotedWith) {
  EXPECT_DOUBLE_EQ(2 * 4 * catalogue_link("nvlink1").bandwidth.si(), 160e9);
  EXPECT_DOUBLE_EQ(2 * 6 * catalogue_link("nvlink2").bandwidth.si(), 300e9);
  EXPECT_DOUBLE_EQ(2 * 12 * catalogue_link("nvlink3").bandwidth.si(), 600e9);
  EXPECT_DOUBLE_EQ(2 * 4 * catalogue_link("nvlink3_x4").bandwidth.si(), 112.5e9);
  EXPECT_DOUBLE_EQ(2 * 18 * catalogue_link("nvlink4").bandwidth.si(), 900e9);
  EXPECT_DOUBLE_EQ(2 * 18 * catalogue_link("nvlink5").bandwidth.si(), 1800e9);
}

TEST(LinkSpec, EveryFileOfTheCatalogueLoads) {
  const Catalog catalog = Catalog::from(TBDSIM_SOURCE_DIR);
  EXPECT_GE(catalog.names(Kind::link).size(), 17u);
  for (const std::string& name : catalog.names(Kind::link)) {
    SCOPED_TRACE(name);
    const LinkSpec link = read_link(catalog.find(Kind::link, name));
    EXPECT_EQ(link.name, name);
    EXPECT_FALSE(link.title.empty());
    EXPECT_LE(achievable(link), link.bandwidth);
    EXPECT_GE(achievable(link), link.bandwidth * 0.5);
    EXPECT_LT(link.latency, Seconds(1e-3));
    EXPECT_GE(link.sources.size(), 3u);
  }
}

// 1 Gbit/s is 1e9 / 8 bytes a second, with or without a blank before the unit.
TEST(Network, IsReadAsTyped) {
  const Catalog catalog = Catalog::from(TBDSIM_SOURCE_DIR);
  for (const char* text : {"1 Gbit/s", "1Gbit/s", "1000 Mbit/s", "ethernet_1g"})
    EXPECT_DOUBLE_EQ(network_named(text, catalog).bandwidth.si(), 0.125e9) << text;
}

TEST(Network, NoRateIsTakenForAFile) {
  for (const char* text :
       {"-1 Gbit/s", "+1 Gbit/s", "nan Gbit/s", ".5 Gbit/s", " 1 Gbit/s", "25", "-1Gbit/s"})
    EXPECT_TRUE(is_rate(text)) << text;
  for (const char* text :
       {"", "ethernet_1g", "./25g.yaml", "../links/25g", "25g.yaml", "/tmp/links/1", "nvlink"})
    EXPECT_FALSE(is_rate(text)) << text;
}

TEST(Network, SaysWhatIsWrong) {
  const Catalog catalog = Catalog::from(TBDSIM_SOURCE_DIR);
  const auto message = [&](const char* text) {
    return test::message_of<UsageError>([&] { (void)network_named(text, catalog); });
  };
  EXPECT_THAT(message("-1 Gbit/s"), testing::HasSubstr("is negative; expected a bandwidth"));
  EXPECT_THAT(message("0 Gbit/s"), testing::HasSubstr("carries nothing"));
  EXPECT_THAT(message("nan Gbit/s"), testing::HasSubstr("is not a number with a unit"));
  EXPECT_THAT(message("ethernet_3g"), testing::HasSubstr("unknown network 'ethernet_3g'; expected one of"));
  EXPECT_THAT(message("pcie3"), testing::HasSubstr("'pcie3' is no network"));
}

}  // namespace
}  // namespace tbdsim
