#include "hwspecs/gpu_spec.h"

#include <cmath>
#include <fstream>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hwspecs/base/catalog.h"
#include "hwspecs/base/error.h"
#include "hwspecs/base/quantity_text.h"
#include "tests/hwspecs/message_of.h"
#include "tests/support/temp_dir.h"

namespace tbdsim {
namespace {
namespace fs = std::filesystem;

constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;
constexpr double kMiB = 1024.0 * 1024.0;

GpuSpec read_gpu(const fs::path& file) { return tbdsim::read_gpu(file, Catalog::from(TBDSIM_SOURCE_DIR)); }

GpuSpec catalogue_gpu(const char* name) {
  return read_gpu(Catalog::from(TBDSIM_SOURCE_DIR).find(Kind::gpu, name));
}

// Table IV of the TBD paper (Zhu et al., IISWC 2018). It prints memory as "12 GB" and "8 GB" and the
// last-level cache as "3 MB" and "2 MB"; both are binary units on the card. Its "cores" are multiprocessors x
// 128 lanes.
TEST(GpuSpec, TitanXpIsThatOfTableIV) {
  const GpuSpec gpu = catalogue_gpu("titanxp");
  EXPECT_EQ(gpu.sm_count, 30);
  EXPECT_EQ(gpu.sm_count * gpu.fp32_lanes_per_sm, 3840);
  EXPECT_EQ(gpu.boost_clock, Hertz(1582e6));
  EXPECT_EQ(gpu.memory_size, Bytes(12 * kGiB));
  EXPECT_EQ(gpu.memory_type, "GDDR5X");
  EXPECT_DOUBLE_EQ(gpu.memory_bandwidth.si(), 547.6e9);
  EXPECT_EQ(gpu.l2_size, Bytes(3 * kMiB));
}

TEST(GpuSpec, QuadroP4000IsThatOfTableIV) {
  const GpuSpec gpu = catalogue_gpu("p4000");
  EXPECT_EQ(gpu.sm_count, 14);
  EXPECT_EQ(gpu.sm_count * gpu.fp32_lanes_per_sm, 1792);
  EXPECT_EQ(gpu.boost_clock, Hertz(1480e6));
  EXPECT_EQ(gpu.memory_size, Bytes(8 * kGiB));
  EXPECT_EQ(gpu.memory_type, "GDDR5");
  EXPECT_DOUBLE_EQ(gpu.memory_bandwidth.si(), 243e9);
  EXPECT_EQ(gpu.l2_size, Bytes(2 * kMiB));
}

// 30 SMs x 128 lanes x 2 flop x 1582 MHz = 12.149760 Tflop/s; fp16 is stored but computed in fp32, so at that
// rate.
TEST(GpuSpec, PeakIsLanesTimesClock) {
  const GpuSpec gpu = catalogue_gpu("titanxp");
  EXPECT_DOUBLE_EQ(rate_of(gpu, MathType::fp32).peak.si(), 12.149760e12);
  EXPECT_DOUBLE_EQ(rate_of(gpu, MathType::fp16).peak.si(), 12.149760e12);
  EXPECT_EQ(gpu.compute_capability, 6.1);
  EXPECT_EQ(math_text(gpu), "fp32, fp16 (computed in fp32)");
  EXPECT_EQ(test::message_of<UsageError>([&] { (void)rate_of(gpu, MathType::tf32); }),
            "NVIDIA TITAN Xp has no tf32 arithmetic; expected one of its own: fp32, fp16 (computed in fp32)");
}

TEST(GpuSpec, EveryFileOfTheCatalogueLoads) {
  const Catalog catalog = Catalog::from(TBDSIM_SOURCE_DIR);
  for (const std::string& name : catalog.names(Kind::gpu)) {
    SCOPED_TRACE(name);
    const GpuSpec gpu = read_gpu(catalog.find(Kind::gpu, name));
    EXPECT_EQ(gpu.name, name);
    EXPECT_GT(rate_of(gpu, MathType::fp32).peak, FlopsPerSecond(1e12));
    for (const auto& rate : gpu.math) {
      if (!rate) continue;
      EXPECT_NEAR(rate->peak / rate->quoted_peak, 1.0, 0.01);
    }
    // A kernel that moves 4 bytes for each flop is slower than one that moves none, on any card.
    EXPECT_LT(gpu.memory_bandwidth.si(), rate_of(gpu, MathType::fp32).peak.si());
    EXPECT_LT(gpu.l2_size, gpu.memory_size);
  }
}

TEST(GpuSpec, CardsSoldAsGeForceSaySo) {
  const Catalog catalog = Catalog::from(TBDSIM_SOURCE_DIR);
  for (const std::string& name : catalog.names(Kind::gpu)) {
    const GpuSpec gpu = read_gpu(catalog.find(Kind::gpu, name));
    EXPECT_EQ(gpu.product_line == ProductLine::geforce, gpu.title.find("GeForce") != std::string::npos)
        << name;
  }
  EXPECT_EQ(catalogue_gpu("titanxp").product_line, ProductLine::titan);
  EXPECT_EQ(catalogue_gpu("rtxa6000").product_line, ProductLine::workstation);
  EXPECT_EQ(catalogue_gpu("t4").product_line, ProductLine::datacenter);
}

// The names that tables of measured runs use.
TEST(GpuSpec, TheCatalogueHasTheCommonTrainingGpus) {
  EXPECT_THAT(Catalog::from(TBDSIM_SOURCE_DIR).names(Kind::gpu), testing::IsSupersetOf({"titanxp",
                                                                                        "p4000",
                                                                                        "gtx1080",
                                                                                        "gtx1080ti",
                                                                                        "titanx_maxwell",
                                                                                        "titanx_pascal",
                                                                                        "titanv",
                                                                                        "titanrtx",
                                                                                        "rtx2080ti",
                                                                                        "quadro_rtx6000",
                                                                                        "quadro_rtx8000",
                                                                                        "m40",
                                                                                        "m60",
                                                                                        "k80",
                                                                                        "p4",
                                                                                        "p100_pcie",
                                                                                        "p100_sxm2",
                                                                                        "t4",
                                                                                        "v100_pcie_16gb",
                                                                                        "v100_sxm2_16gb",
                                                                                        "v100_sxm2_32gb",
                                                                                        "v100_sxm3_32gb",
                                                                                        "a10",
                                                                                        "a40",
                                                                                        "a100_pcie_40gb",
                                                                                        "a100_pcie_80gb",
                                                                                        "a100_sxm_40gb",
                                                                                        "a100_sxm_80gb",
                                                                                        "rtxa6000",
                                                                                        "rtx3090",
                                                                                        "rtx4090",
                                                                                        "l4",
                                                                                        "l40s",
                                                                                        "h100_pcie",
                                                                                        "h100_sxm",
                                                                                        "h200",
                                                                                        "h200_nvl",
                                                                                        "b200"}));
}

TEST(GpuSpec, BusesAndNvLinksAreLinksOfTheCatalogue) {
  const Catalog catalog = Catalog::from(TBDSIM_SOURCE_DIR);
  for (const std::string& name : catalog.names(Kind::gpu)) {
    const GpuSpec gpu = read_gpu(catalog.find(Kind::gpu, name));
    EXPECT_GT(gpu.bus.bandwidth.si(), 0) << name;
    EXPECT_TRUE(!gpu.nvlink || gpu.nvlink->link.bandwidth.si() > 0) << name;
  }
}

// The file valid_gpu.yaml of tests/bad_specs, whose peak is 10 SMs x 256 flop x 1500 MHz = 3.84 Tflop/s,
// changed.
class ChangedGpu : public testing::Test {
 protected:
  fs::path with(const std::string& from, const std::string& to) {
    std::ostringstream content;
    content << std::ifstream(fs::path(TBDSIM_SOURCE_DIR) / "tests/bad_specs/valid_gpu.yaml").rdbuf();
    std::string yaml = content.str();
    const std::size_t at = yaml.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return directory_.write("card.yaml", yaml.replace(at, from.size(), to));
  }
  fs::path quoting(double off) { return with("3.84 TFLOP/s", std::to_string(3.84 / (1 + off)) + " TFLOP/s"); }

 private:
  test::TempDir directory_;
};

TEST_F(ChangedGpu, QuotedPeakMustAgreeWithinOnePercent) {
  EXPECT_NO_THROW((void)read_gpu(quoting(0.009)));
  EXPECT_NO_THROW((void)read_gpu(quoting(-0.009)));
  EXPECT_THROW((void)read_gpu(quoting(0.011)), SpecError);
  EXPECT_THROW((void)read_gpu(quoting(-0.011)), SpecError);
  // 3.84 / 3.798219 - 1 = 1.1 %.
  const fs::path file = quoting(0.011);
  EXPECT_EQ(test::message_of<SpecError>([&] { (void)read_gpu(file); }),
            file.string() +
                ":8:52: math.fp32.quoted_peak: 3.798 Tflop/s is quoted, but 10 SMs x 256 flop/clock/SM x " +
                "1.5 GHz = 3.84 Tflop/s, +1.1 % off; expected agreement within 1 %");
}

// Tensor cores run at a clock of their own: 10 SMs x 1024 flop x 1000 MHz = 10.24 Tflop/s.
TEST_F(ChangedGpu, AMathTypeMayHaveItsOwnClock) {
  const GpuSpec gpu = read_gpu(with("TFLOP/s}\n",
                                    "TFLOP/s}\n  fp16: {flops_per_clock_per_sm: 1024, clock: 1000 MHz, "
                                    "quoted_peak: 10.24 TFLOP/s}\n"));
  EXPECT_DOUBLE_EQ(rate_of(gpu, MathType::fp16).peak.si(), 10.24e12);
  EXPECT_DOUBLE_EQ(rate_of(gpu, MathType::fp32).peak.si(), 3.84e12);
  EXPECT_EQ(math_text(gpu), "fp32, fp16");
}

TEST_F(ChangedGpu, PriceIsOptionalButSourced) {
  EXPECT_FALSE(read_gpu(with("tdp: 105 W", "tdp: 105 W")).price.has_value());
  const GpuSpec gpu = read_gpu(with("sources:\n", "price: 500 USD\nsources:\n  price: \"a test\"\n"));
  EXPECT_EQ(gpu.price, Dollars(500));
  EXPECT_EQ(gpu.sources.at("price"), "a test");
  EXPECT_THROW((void)read_gpu(with("sources:\n", "price: 500 USD\nsources:\n")), SpecError);
}

TEST_F(ChangedGpu, RentIsByTheHour) {
  const GpuSpec gpu =
      read_gpu(with("sources:\n", "price_per_hour: 3.6 USD/h\nsources:\n  price_per_hour: x\n"));
  ASSERT_TRUE(gpu.price_per_hour.has_value());
  EXPECT_DOUBLE_EQ((*gpu.price_per_hour * Seconds(3600)).si(), 3.6);
  EXPECT_EQ(to_text(*gpu.price_per_hour), "3.6 USD/h");
  EXPECT_THROW((void)read_gpu(with("sources:\n", "price_per_hour: 3.6 USD/h\nsources:\n")), SpecError);
}

TEST_F(ChangedGpu, NvLinkIsOptional) {
  EXPECT_FALSE(read_gpu(with("tdp: 105 W", "tdp: 105 W")).nvlink.has_value());
  const GpuSpec gpu =
      read_gpu(with("sources:\n", "nvlink: {link: nvlink2, count: 6}\nsources:\n  nvlink: x\n"));
  ASSERT_TRUE(gpu.nvlink.has_value());
  EXPECT_EQ(gpu.nvlink->link.name, "nvlink2");
  EXPECT_EQ(gpu.nvlink->count, 6);
}

TEST_F(ChangedGpu, LanesAndRateOfFp32Agree) {
  EXPECT_THROW((void)read_gpu(with("fp32_lanes_per_sm: 128", "fp32_lanes_per_sm: 64")), SpecError);
}

}  // namespace
}  // namespace tbdsim
