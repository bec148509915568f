// Which profile a GPU takes: its own, that of a measured board of its chip, its architecture's, or the
// generic one.
#include <string>

#include <gtest/gtest.h>

#include "tests/support/cli.h"

namespace tbdsim {
namespace {

std::string profile_of(const std::string& gpu, SpecCache& specs) {
  return specs.profile_for({gpu, specs.gpu(gpu)}, "")->name;
}

TEST(ProfileChoice, OwnThenOfTheChipThenOfTheArchitecture) {
  SpecCache specs = test::source_specs();
  EXPECT_EQ(profile_of("a100_sxm_80gb", specs), "a100_sxm_80gb");
  EXPECT_EQ(profile_of("a100_sxm_40gb", specs), "a100_sxm_80gb")
      << "400 W, as the 40 GB have; PCIe's boards have 250 and 300";
  EXPECT_EQ(profile_of("a800_pcie_80gb", specs), "a100_pcie_80gb");
  EXPECT_EQ(profile_of("v100_sxm2_32gb", specs), "v100_sxm2_16gb");
  EXPECT_EQ(profile_of("h100_pcie", specs), "hopper") << "114 SMs";
  EXPECT_EQ(profile_of("gtx1080", specs), "pascal") << "20 SMs as a P4, with 2.4 times its power";
  EXPECT_EQ(profile_of("k80", specs), "generic");
}

// A changed number of SMs does not make another chip of a card.
TEST(ProfileChoice, AChangedCardKeepsItsProfile) {
  SpecCache before = test::source_specs();
  SpecCache specs(before, SpecChanges{{.spec = "gpu", .path = {"sm_count"}, .value = "120"}});
  EXPECT_EQ(profile_of("a100_sxm_40gb", specs), "a100_sxm_80gb");
}

// A file with the data of a catalogue's card is of a card that nobody timed.
TEST(ProfileChoice, AFileHasItsArchitecturesProfile) {
  SpecCache specs = test::source_specs();
  const std::string file = specs.catalog().find(Kind::gpu, "a100_sxm_40gb").string();
  EXPECT_EQ(profile_of(file, specs), "ampere");
}

}  // namespace
}  // namespace tbdsim
