// Profiles: every file of the catalogue, and what the reader accepts.
#include "costmodel/profile.h"

#include <gmock/gmock.h>

#include "hwspecs/base/catalog.h"
#include "tests/support/temp_dir.h"

namespace tbdsim {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(Profiles, EveryFileOfTheCatalogueLoads) {
  const Catalog catalog = Catalog::from(TBDSIM_SOURCE_DIR);
  const auto names = catalog.names(Kind::profile);
  ASSERT_THAT(names, testing::Contains("uncalibrated"));
  for (const std::string& name : names) {
    const Profile profile = read_profile(catalog.find(Kind::profile, name));
    SCOPED_TRACE(name);
    EXPECT_EQ(profile.name, name);
    EXPECT_FALSE(profile.title.empty());
    EXPECT_TRUE(profile.sources.contains("kinds") && profile.sources.contains("spread"));
    for (const Efficiency<double>& kind : profile.kinds) {
      EXPECT_GT(kind.compute, 0);
      EXPECT_GT(kind.bandwidth, 0);
      EXPECT_GT(kind.overhead_s, 0);
    }
  }
}

TEST(Profiles, UncalibratedSaysSo) {
  const Profile profile = read_profile(Catalog::from(TBDSIM_SOURCE_DIR).find(Kind::profile, "uncalibrated"));
  EXPECT_FALSE(profile.calibrated);
  EXPECT_THAT(profile.sources.at("kinds"), HasSubstr("estimate"));
}

std::string profile_text(const std::string& gemm, const std::string& spread = "0.1") {
  std::string text = "title: T\ncalibrated: true\nkinds:\n";
  for (const std::string_view kind : kKernelKindNames) {
    text += "  " + std::string(kind) + ": " +
            (kind == "gemm" ? gemm : "{compute: 1, bandwidth: 1, overhead: 1 us}") + "\n";
  }
  return text + "spread: " + spread + "\nsources: {kinds: a test, spread: a test}\n";
}

Profile profile_from(const std::string& text) {
  const test::TempDir directory;
  return read_profile(directory.write("mine.yaml", text));
}

TEST(ReadProfile, ReadsEveryNumber) {
  const Profile profile = profile_from(profile_text("{compute: 0.8, bandwidth: 0.7, overhead: 5 us}"));
  EXPECT_EQ(profile.name, "mine");
  EXPECT_TRUE(profile.calibrated);
  EXPECT_DOUBLE_EQ(profile.spread, 0.1);
  const Efficiency<double>& gemm = profile.kinds[index_of(KernelKind::gemm)];
  EXPECT_DOUBLE_EQ(gemm.compute, 0.8);
  EXPECT_DOUBLE_EQ(gemm.bandwidth, 0.7);
  EXPECT_DOUBLE_EQ(gemm.overhead_s, 5e-6);
}

void expect_error(const std::string& text, const std::string& part) {
  EXPECT_THAT([&] { (void)profile_from(text); }, ThrowsMessage<SpecError>(HasSubstr(part))) << text;
}

TEST(ReadProfile, Errors) {
  expect_error(profile_text("{compute: 0.8, bandwidth: 0.7, overhead: 5}"), "overhead");   // no unit
  expect_error(profile_text("{compute: 80, bandwidth: 0.7, overhead: 5 us}"), "compute");  // per cent
  expect_error(profile_text("{compute: 0, bandwidth: 0.7, overhead: 5 us}"), "compute");
  expect_error(profile_text("{compute: 1, bandwith: 0.7, overhead: 5 us}"), "bandwi");
  expect_error(profile_text("{compute: 1, bandwidth: 1, overhead: 1 us}", "-0.1"), "spread");
}

TEST(ReadProfile, EveryKindNeedsAnEntry) {
  for (const std::string_view kind : kKernelKindNames) {
    std::string text = profile_text("{compute: 1, bandwidth: 1, overhead: 1 us}");
    const std::size_t line = text.find("  " + std::string(kind) + ":");
    text.erase(line, text.find('\n', line) + 1 - line);
    expect_error(text, std::string(kind));
  }
}

}  // namespace
}  // namespace tbdsim
