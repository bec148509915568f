// Profiles: every file of the catalogue, and what the reader accepts.
#include "costmodel/profile/profile.h"

#include <filesystem>

#include <gmock/gmock.h>

#include "hwspecs/base/catalog.h"
#include "tests/costmodel/recurrent_block.h"
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
    const Profile profile = read_profile(catalog.find(Kind::profile, name), catalog);
    SCOPED_TRACE(name);
    EXPECT_EQ(profile.name, name);
    EXPECT_FALSE(profile.title.empty());
    EXPECT_TRUE(profile.sources.contains(profile.calibrated ? "families" : "kinds"));
    EXPECT_GT(profile.spread, 0);
    for (const Efficiency<double>& kind : profile.kinds) {
      EXPECT_GT(kind.compute, 0);
      EXPECT_GT(kind.bandwidth, 0);
      EXPECT_GT(kind.overhead_s, 0);
    }
  }
}

// Nothing measured on a card is in the profiles that are to judge predictions of unseen cards.
TEST(Profiles, OfUnseenCardsHoldNothingOfTheCard) {
  const Catalog catalog = Catalog::from(TBDSIM_SOURCE_DIR);
  int files = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(TBDSIM_SOURCE_DIR "/calibrate/profiles/holdout")) {
    const Profile profile = read_profile(entry.path(), catalog);
    SCOPED_TRACE(profile.name);
    ASSERT_FALSE(profile.gpu.empty());
    EXPECT_TRUE(profile.name == profile.gpu || profile.name == profile.gpu + "_one_gemm");
    for (const auto& blocks : profile.families) {
      for (const ProfileBlock& block : blocks) {
        EXPECT_FALSE(block.own);
        for (const auto& [from, count] : block.records)
          EXPECT_FALSE(from.starts_with(profile.gpu + ",")) << from;
      }
    }
    ++files;
  }
  EXPECT_GE(files, 30);
}

TEST(Profiles, UncalibratedSaysSo) {
  const Catalog catalog = Catalog::from(TBDSIM_SOURCE_DIR);
  const Profile profile = read_profile(catalog.find(Kind::profile, "uncalibrated"), catalog);
  EXPECT_FALSE(profile.calibrated);
  EXPECT_EQ(calibration_text(profile), profile.title + " (fitted to no measurement)");
  EXPECT_THAT(profile.sources.at("kinds"), HasSubstr("estimate"));
}

std::string profile_text(const std::string& gemm, const std::string& spread = "0.1") {
  std::string text = "schema_version: 2\ntitle: T\ncalibrated: true\nkinds:\n";
  for (const std::string_view kind : kKernelKindNames) {
    text += "  " + std::string(kind) + ": " +
            (kind == "gemm" ? gemm : "{compute: 1, bandwidth: 1, overhead: 1 us}") + "\n";
  }
  return text + "spread: " + spread + "\nsources: {kinds: a test, spread: a test}\n";
}

Profile profile_from(const std::string& text) {
  const test::TempDir directory;
  return read_profile(directory.write("mine.yaml", text), Catalog::from(TBDSIM_SOURCE_DIR));
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

// A file of its own `kinds`, or `roofline` with the name of one that has them.
TEST(ReadProfile, KindsOfAnotherProfile) {
  const Catalog catalog = Catalog::from(TBDSIM_SOURCE_DIR);
  const Profile roofline = read_profile(catalog.find(Kind::profile, "uncalibrated"), catalog);
  const Profile profile =
      profile_from("schema_version: 2\ntitle: T\ncalibrated: true\nroofline: uncalibrated\nsources: {}\n");
  EXPECT_EQ(profile.spread, roofline.spread);
  const std::size_t gather = index_of(KernelKind::gather);
  EXPECT_EQ(profile.kinds[gather].bandwidth, roofline.kinds[gather].bandwidth);
}

TEST(ReadProfile, KindsOfAProfileThatHasNone) {
  const test::TempDir directory;
  const Catalog catalog = Catalog::from(TBDSIM_SOURCE_DIR);
  const std::string head = "schema_version: 2\ntitle: T\ncalibrated: true\nroofline: ";
  const auto first = directory.write("first.yaml", head + "uncalibrated\nsources: {}\n");
  const auto second = directory.write("second.yaml", head + first.string() + "\nsources: {}\n");
  EXPECT_THAT([&] { (void)read_profile(second, catalog); },
              ThrowsMessage<SpecError>(
                  HasSubstr("second.yaml:4:11: roofline: names a profile that has no kinds of its own")));
}

Profile fitted() {
  Profile profile =
      test::with_blocks({test::with_residual(test::recurrent_block(), test::two_seconds(), -0.1234),
                         test::recurrent_block("cudnn7", MathType::fp16, false)});
  profile.name = "mine";
  profile.title = "A card, measured";
  profile.gpu = "titanxp";
  profile.calibrated = true;
  profile.sources = {{"families", "fitted to a test"}};
  ProfileBlock& own = profile.families[index_of_family<RecurrentFamily>()][0];
  for (std::size_t i = 0; i < own.parameters.size(); ++i)
    own.parameters[i] = RecurrentFamily::parameters[i].start;
  own.at_bound = {"product", "call"};
  own.clock = 0.875;
  own.bandwidth = 1.0625;
  own.converged = false;
  own.iterations = 41;
  own.cost = 123.5;
  own.records = {{"titanxp, baidu-research/DeepBench", 317}};
  own.interval = 1.5;
  own.kriging.repeat = 0.0375;
  ProfileBlock& other = profile.families[index_of_family<RecurrentFamily>()][1];
  other.parameters = own.parameters;
  other.clock_of_expected = true;
  other.clock_sd = 0.125;
  other.interval = 1.25;
  ProfileBlock gemm;
  gemm.generation = "cublas8";
  for (const Parameter& parameter : GemmFamily::parameters) gemm.parameters.push_back(parameter.start);
  const GemmCall product{1760, 16, 1760, 1, true, false, true, 2, 4};
  gemm.measured = {product};
  gemm.residuals = ResidualTable({{GemmFamily::features(product), 0.5, 0}});
  profile.families[index_of_family<GemmFamily>()] = {gemm};
  return profile;
}

void expect_same(const ProfileBlock& a, const ProfileBlock& b) {
  EXPECT_EQ(a.generation, b.generation);
  EXPECT_EQ(a.math, b.math);
  EXPECT_EQ(a.own, b.own);
  EXPECT_EQ(a.parameters, b.parameters);
  EXPECT_EQ(a.at_bound, b.at_bound);
  EXPECT_EQ(a.clock, b.clock);
  EXPECT_EQ(a.clock_of_expected, b.clock_of_expected);
  EXPECT_EQ(a.clock_sd, b.clock_sd);
  EXPECT_EQ(a.bandwidth, b.bandwidth);
  EXPECT_EQ(a.converged, b.converged);
  EXPECT_EQ(a.iterations, b.iterations);
  EXPECT_EQ(a.cost, b.cost);
  EXPECT_EQ(a.records, b.records);
  EXPECT_EQ(a.kriging.amplitude, b.kriging.amplitude);
  EXPECT_EQ(a.kriging.length, b.kriging.length);
  EXPECT_EQ(a.kriging.nugget, b.kriging.nugget);
  EXPECT_EQ(a.kriging.repeat, b.kriging.repeat);
  EXPECT_EQ(a.interval, b.interval);
  EXPECT_EQ(a.measured, b.measured);
  ASSERT_EQ(a.residuals.rows().size(), b.residuals.rows().size());
  for (std::size_t i = 0; i < a.residuals.rows().size(); ++i) {
    const ResidualRow& x = a.residuals.rows()[i];
    const ResidualRow& y = b.residuals.rows()[i];
    EXPECT_EQ(x.at.group, y.at.group);
    EXPECT_EQ(x.at.x, y.at.x);
    EXPECT_EQ(x.residual, y.residual);
    EXPECT_EQ(x.call, y.call);
  }
}

TEST(WriteProfile, ReadsBackAsTheSame) {
  const Profile written = fitted();
  const Profile read = profile_from(write_profile(written));
  EXPECT_EQ(read.title, written.title);
  EXPECT_EQ(read.gpu, written.gpu);
  EXPECT_EQ(read.architecture, written.architecture);
  EXPECT_TRUE(read.calibrated);
  EXPECT_EQ(read.sources, written.sources);
  for (std::size_t family = 0; family < kFamilyCount; ++family) {
    ASSERT_EQ(read.families[family].size(), written.families[family].size()) << kFamilyNames[family];
    for (std::size_t i = 0; i < read.families[family].size(); ++i) {
      expect_same(read.families[family][i], written.families[family][i]);
    }
  }
  EXPECT_EQ(write_profile(read), write_profile(written));
}

// Calls without groups or dilation are listed without columns for them, as in profiles of before these were
// known.
TEST(WriteProfile, ColumnsForGroupsOnlyWhereTheyAreNeeded) {
  Profile profile = fitted();
  ProfileBlock block;
  block.generation = "cudnn7";
  for (const Parameter& parameter : ConvFamily::parameters) block.parameters.push_back(parameter.start);
  ConvCall call{.images = 8, .channels = 64, .filters = 64, .limits = {}};
  const auto measure = [&](const ConvCall& of) {
    block.measured = {of};
    block.residuals = ResidualTable({{ConvFamily::features(of), 0.25, 0}});
    profile.families[index_of_family<ConvFamily>()] = {block};
    return write_profile(profile);
  };
  const std::string plain = measure(call);
  EXPECT_THAT(plain, testing::Not(HasSubstr("dilation_height")));
  expect_same(profile_from(plain).families[index_of_family<ConvFamily>()][0], block);
  call.groups = 64;
  call.channels_last = true;
  const std::string grouped = measure(call);
  EXPECT_THAT(grouped, HasSubstr("element_bytes groups dilation_height dilation_width channels_last "
                                 "framework_kernel residual"));
  const Profile read = profile_from(grouped);
  expect_same(read.families[index_of_family<ConvFamily>()][0], block);
  EXPECT_EQ(std::get<ConvCall>(read.families[index_of_family<ConvFamily>()][0].measured[0]), call);
}

// A table is searched for every kernel: 2000 rows are enough.
TEST(ReadProfile, TooManyResiduals) {
  Profile profile = fitted();
  ProfileBlock& block = profile.families[index_of_family<RecurrentFamily>()][0];
  std::vector<ResidualRow> rows;
  block.measured.assign(2000, test::two_seconds());
  for (int i = 0; i < 2000; ++i) rows.push_back({RecurrentFamily::features(test::two_seconds()), 0.1, i});
  block.residuals = ResidualTable(rows);
  EXPECT_NO_THROW((void)profile_from(write_profile(profile)));
  rows.push_back({rows[0].at, 0.1, 2000});
  block.measured.push_back(test::two_seconds());
  block.residuals = ResidualTable(rows);
  expect_error(write_profile(profile),
               "families.recurrent[0].residuals: has 2001 rows; expected at most 2000");
}

TEST(CalibrationText, SaysWhoseMeasurementsTheyAre) {
  Profile profile = fitted();
  EXPECT_EQ(calibration_text(profile),
            "A card, measured (1 of 3 blocks from it, the others from other GPUs)");
  profile.gpu.clear();
  EXPECT_EQ(calibration_text(profile), "A card, measured (no kernel of this GPU was measured)");
}

}  // namespace
}  // namespace tbdsim
