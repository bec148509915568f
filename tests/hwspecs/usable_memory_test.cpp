#include "hwspecs/usable_memory.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <sstream>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hwspecs/base/error.h"
#include "hwspecs/gpu_spec.h"
#include "tests/hwspecs/message_of.h"
#include "tests/support/temp_dir.h"

namespace tbdsim {
namespace {

constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

std::vector<GpuSpec> catalogue_gpus() {
  const Catalog catalog = Catalog::from(TBDSIM_SOURCE_DIR);
  std::vector<GpuSpec> gpus;
  for (const std::string& name : catalog.names(Kind::gpu))
    gpus.push_back(read_gpu(catalog.find(Kind::gpu, name), catalog));
  return gpus;
}

// Usable memory over memory_size without the sixteenth that ECC takes, of the cards whose usable memory is
// known.
std::vector<double> known_shares() {
  std::vector<double> shares;
  for (const GpuSpec& gpu : catalogue_gpus()) {
    if (!gpu.sources.contains("usable_memory")) continue;
    const double left = gpu.ecc && ecc_takes_memory(gpu.memory_type) ? 15.0 / 16 : 1;
    shares.push_back(gpu.usable_memory / (gpu.memory_size * left));
  }
  return shares;
}

TEST(UsableMemory, IsLessThanEveryCardIsSoldWith) {
  for (const GpuSpec& gpu : catalogue_gpus()) {
    EXPECT_LT(gpu.usable_memory, gpu.memory_size) << gpu.name;
    EXPECT_GT(gpu.usable_memory, gpu.memory_size * 0.9) << gpu.name;
  }
}

TEST(UsableMemory, TheRulesShareIsTheMedianOfKnownCards) {
  EXPECT_GE(known_shares().size(), 30U);
  EXPECT_NEAR(kReportedShare, median(known_shares()), 0.0005);
}

// The error of the rule on cards left out, as usable_memory.h states it.
TEST(UsableMemory, ErrorOfCardsLeftOut) {
  const std::vector<double> shares = known_shares();
  std::vector<double> errors;
  for (std::size_t out = 0; out < shares.size(); ++out) {
    std::vector<double> others = shares;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(out));
    errors.push_back(std::abs(median(others) / shares[out] - 1));
  }
  const auto count = static_cast<double>(errors.size());
  EXPECT_LT(std::accumulate(errors.begin(), errors.end(), 0.0) / count, 0.006);
  EXPECT_LT(*std::max_element(errors.begin(), errors.end()), 0.024);
}

// 16 GiB * 15/16 * 0.989 = 14.835 GiB with ECC in GDDR6; HBM2 has chips for it: 16 GiB * 0.989 = 15.824 GiB.
TEST(UsableMemory, EccTakesASixteenthOfAllButStackedMemory) {
  const Bytes size(16 * kGiB);
  EXPECT_NEAR(usable_memory_by_rule(size, "GDDR6", true).si() / kGiB, 14.835, 1e-3);
  EXPECT_NEAR(usable_memory_by_rule(size, "GDDR6", false).si() / kGiB, 15.824, 1e-3);
  EXPECT_NEAR(usable_memory_by_rule(size, "HBM2", true).si() / kGiB, 15.824, 1e-3);
}

// valid_gpu.yaml of tests/bad_specs, changed.
class CardOfAUser : public testing::Test {
 protected:
  GpuSpec read(const std::string& more, const SpecChanges& changes = {}) {
    return read_gpu(write(more), Catalog::from(TBDSIM_SOURCE_DIR), changes);
  }
  std::filesystem::path write(const std::string& more) {
    std::ostringstream content;
    content
        << std::ifstream(std::filesystem::path(TBDSIM_SOURCE_DIR) / "tests/bad_specs/valid_gpu.yaml").rdbuf();
    std::string yaml = content.str();
    return directory_.write("card.yaml", yaml.replace(yaml.find("sources:\n"), 9, more));
  }
  // Usable memory in bytes over memory_size.
  static double share(const GpuSpec& gpu) { return gpu.usable_memory / gpu.memory_size; }

 private:
  test::TempDir directory_;
};

TEST_F(CardOfAUser, FollowsTheRuleUnlessItSays) {
  EXPECT_NEAR(share(read("ecc: false\nsources:\n  ecc: t\n")), kReportedShare, 1e-9);
  EXPECT_NEAR(share(read("ecc: true\nsources:\n  ecc: t\n")), kReportedShare * 15 / 16, 1e-9);
  EXPECT_EQ(read("usable_memory: 7 GiB\nsources:\n  usable_memory: t\n").usable_memory, Bytes(7 * kGiB));
}

TEST_F(CardOfAUser, HasNoMoreThanItIsSoldWith) {
  EXPECT_THAT(test::message_of<SpecError>(
                  [&] { (void)read("usable_memory: 90 GiB\nsources:\n  usable_memory: t\n"); }),
              testing::HasSubstr("usable_memory: 90 GiB of a card with 8 GiB; expected no more than its"));
}

// A card of 8 GiB with 7 usable keeps 7/8 of another size, and 16/15 of that without ECC.
TEST_F(CardOfAUser, KeepsItsShareOfAnotherSize) {
  const std::string known = "ecc: true\nusable_memory: 7 GiB\nsources:\n  usable_memory: t\n  ecc: t\n";
  const auto changed = [&](const char* change) { return read(known, {parse_change(change)}).usable_memory; };
  EXPECT_NEAR(changed("gpu.memory_size=x2") / Bytes(14 * kGiB), 1, 1e-9);
  EXPECT_NEAR(changed("gpu.ecc=false") / Bytes(7 * kGiB * 16 / 15), 1, 1e-9);
  EXPECT_EQ(changed("gpu.usable_memory=6 GiB"), Bytes(6 * kGiB));
  EXPECT_EQ(changed("gpu.sm_count=20"), Bytes(7 * kGiB));
}

}  // namespace
}  // namespace tbdsim
