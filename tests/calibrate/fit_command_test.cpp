// `tbd-calibrate fit` and `crossval` in-process: what they write, print and refuse.
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "calibrate/fit/clock_priors.h"
#include "calibrate/fit/profile_fit.h"
#include "calibrate/samples/load_records.h"
#include "costmodel/estimate.h"
#include "hwspecs/base/suggest.h"
#include "tests/calibrate/run_calibrate.h"
#include "tests/calibrate/synthetic.h"
#include "tests/support/temp_dir.h"

namespace tbdsim {
namespace {
namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::UnorderedElementsAre;
using Arguments = std::vector<std::string>;

class FitCommandTest : public testing::Test {
 protected:
  std::string write(const std::vector<Record>& records, const std::string& name = "records.csv") const {
    std::ostringstream text;
    write_csv_row(text, record_columns());
    for (const Record& record : records) write_record(text, record);
    return directory_.write(name, text.str()).string();
  }
  std::string path(const std::string& name) const { return (directory_.path() / name).string(); }
  Profile profile(const std::string& file) const { return read_profile(file, catalog_); }
  const ProfileBlock& gemm_block(const Profile& profile) const {
    return profile.families[index_of_family<GemmFamily>()].at(0);
  }
  static void expect_refused(const Arguments& arguments, const std::string& message) {
    const test::CliResult result = test::calibrate(arguments);
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_EQ(result.err, "tbd-calibrate: " + message + "\n");
    EXPECT_EQ(result.out, "");
  }
  static Kernel kernel_of(const Record& record) {
    Kernel kernel;
    kernel.kind = KernelKind::gemm;
    kernel.shape = GemmShape{
        .m = fixed_size(record.shape.m), .n = fixed_size(record.shape.n), .k = fixed_size(record.shape.k)};
    kernel.written_bytes = fixed_size(4 * record.shape.m * record.shape.n);
    return kernel;
  }
  // Files that a refusal left behind, beside the records.
  std::size_t files() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(directory_.path()), {}));
  }

  test::TempDir directory_;
  Catalog catalog_ = Catalog::from(TBDSIM_SOURCE_DIR);
  GpuSpecs gpus_ = test::specs_of({"titanxp", "p100_pcie"});
  std::vector<Record> records_ = test::gemm_records(gpus_, test::gemm_truth());
};

// Predictions agree with the measured times, and the profile marks its blocks as measured on this GPU.
TEST_F(FitCommandTest, AProfileThatPredictsWhatWasMeasured) {
  const test::CliResult result =
      test::calibrate({"fit", write(records_), "--gpu", "titanxp", "-o", path("titanxp.yaml")});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, path("titanxp.yaml") +
                            ": NVIDIA TITAN Xp, measured, 1 blocks (0 stopped before they converged, 0 "
                            "parameters at a bound)\n");
  const Profile fitted = profile(path("titanxp.yaml"));
  EXPECT_TRUE(fitted.calibrated);
  EXPECT_EQ(fitted.gpu, "titanxp");
  EXPECT_THAT(fitted.sources.at("families"), HasSubstr("made by a test"));
  const ProfileBlock& block = gemm_block(fitted);
  EXPECT_TRUE(block.own);
  EXPECT_EQ(block.generation, "cublas8");
  EXPECT_EQ(block.records, (std::map<std::string, std::int64_t>{{"titanxp, made by a test", 80}}));
  const Calibration calibration = calibration_of(fitted, gpus_.at("titanxp"));
  double off = 0;
  for (const Record& record : records_) {
    if (record.gpu != "titanxp") continue;
    const KernelCost cost = estimate(kernel_of(record), 1, calibration);
    off += std::abs(std::log(cost.total.si() / record.time_s)) / 80;
    EXPECT_EQ(cost.provenance, Provenance::measured);
    EXPECT_LT(cost.sd, 0.1);
  }
  EXPECT_LT(off, 0.02);
}

// A fit of some families without the card keeps what the file says of the card: others were measured on it.
// Records of products of one card: all else is as the profile of its architecture has it, which the output
// says.
TEST_F(FitCommandTest, FamiliesWithoutRecordsAreThoseOfTheArchitecture) {
  std::vector<Record> own;
  for (const Record& record : records_) {
    if (record.gpu == "titanxp") own.push_back(record);
  }
  const test::CliResult result = test::calibrate({"fit", write(own), "-o", path("mine.yaml")});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("measured, 1 blocks ("));
  EXPECT_THAT(result.out, HasSubstr("Without records, as profile pascal has them: "));
  const Profile fitted = profile(path("mine.yaml"));
  const Profile pascal = profile((catalog_.find(Kind::profile, "pascal")).string());
  for (std::size_t i = 0; i < kFamilyCount; ++i) {
    if (i == index_of_family<GemmFamily>()) continue;
    EXPECT_EQ(fitted.families[i].size(), pascal.families[i].size()) << kFamilyNames[i];
    for (const ProfileBlock& block : fitted.families[i]) EXPECT_FALSE(block.own) << kFamilyNames[i];
  }
  EXPECT_EQ(fitted.families[index_of_family<GemmFamily>()].size(), 1U);
  EXPECT_TRUE(gemm_block(fitted).own);
}

TEST_F(FitCommandTest, FamiliesWithoutTheCardKeepTitleAndBoardPower) {
  const std::string file = write(records_);
  ASSERT_EQ(test::calibrate({"fit", file, "--gpu", "titanxp", "-o", path("p.yaml")}).exit_code, 0);
  const Arguments again = {"fit",        file,   "--gpu", "titanxp",     "--without",
                           "--families", "gemm", "-o",    path("p.yaml")};
  ASSERT_EQ(test::calibrate(again).exit_code, 0);
  const Profile kept = profile(path("p.yaml"));
  EXPECT_EQ(kept.title, "NVIDIA TITAN Xp, measured");
  EXPECT_EQ(kept.board_power, gpus_.at("titanxp").tdp.si());
  EXPECT_FALSE(gemm_block(kept).own);
}

// Nothing of the card itself is used but what its data sheet says, or the clock of one product of it. Both
// data sheets let expect 0.92; the other card runs at 0.85 and this one at 0.95, so that its products take
// 0.85 / 0.95 of the time expected.
TEST_F(FitCommandTest, WithoutTheCardOrWithOneProductOfIt) {
  const std::string file = write(records_);
  const auto fitted = [&](const std::string& how) {
    EXPECT_EQ(test::calibrate({"fit", file, "--gpu", "p100_pcie", how, "-o", path("p.yaml")}).exit_code, 0);
    return profile(path("p.yaml"));
  };
  const auto predicted = [&](const Profile& profile) {
    const Record large = test::gemm_record("p100_pcie", 4096, 3000, 6000);
    return estimate(kernel_of(large), 1, calibration_of(profile, gpus_.at("p100_pcie"))).total.si() /
           test::true_time(large, gpus_.at("p100_pcie"), test::gemm_truth());
  };
  const Profile without = fitted("--without"), one_gemm = fitted("--one-gemm");
  EXPECT_EQ(without.title, "NVIDIA Tesla P100 PCIe 16 GB, from its data sheet and other GPUs");
  EXPECT_EQ(one_gemm.title, "NVIDIA Tesla P100 PCIe 16 GB, from one matrix product and other GPUs");
  for (const Profile* profile : {&without, &one_gemm}) {
    EXPECT_FALSE(gemm_block(*profile).own);
    EXPECT_EQ(gemm_block(*profile).records.begin()->first, "titanxp, made by a test");
    EXPECT_GE(gemm_block(*profile).clock_sd, 0.05);
  }
  EXPECT_TRUE(gemm_block(without).clock_of_expected);
  EXPECT_FALSE(gemm_block(one_gemm).clock_of_expected);
  EXPECT_NEAR(predicted(without), 0.95 / 0.85, kAnchoredClockSd);
  EXPECT_NEAR(predicted(one_gemm), 1, kAnchoredClockSd);
}

TEST_F(FitCommandTest, AllOfThem) {
  const test::CliResult result = test::calibrate({"fit", write(records_), "--all", path("new/profiles")});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  std::vector<std::string> names;
  for (const auto& entry : fs::recursive_directory_iterator(path("new/profiles"))) {
    if (entry.is_regular_file()) names.push_back(fs::relative(entry.path(), path("new/profiles")));
  }
  EXPECT_THAT(names, UnorderedElementsAre("titanxp.yaml", "p100_pcie.yaml", "holdout/titanxp.yaml",
                                          "holdout/titanxp_one_gemm.yaml", "holdout/p100_pcie.yaml",
                                          "holdout/p100_pcie_one_gemm.yaml", "pascal.yaml", "generic.yaml"));
  EXPECT_EQ(profile(path("new/profiles/pascal.yaml")).architecture, "pascal");
  EXPECT_EQ(profile(path("new/profiles/generic.yaml")).gpu, "");
}

// Ten products of a card are too few for a block of its own (18). They count among those of the other card:
// the clock is the mean of 0.85 and 0.95, so that its products take 0.95 / 0.90 of the time expected. Nothing
// of them is in the profile that leaves the card out: 0.95 / 0.85.
TEST_F(FitCommandTest, FewCallsOfACardCountAmongThoseOfOthers) {
  std::vector<Record> few;
  std::size_t of_card = 0;
  for (const Record& record : records_) {
    if (record.gpu == "titanxp" || of_card++ % 8 == 0) few.push_back(record);
  }
  ProfileFitOptions options;
  options.gpu = "p100_pcie";
  options.refuse_thin = false;
  const Profile card = fit_profile(few, gpus_, options);
  options.without_gpu = true;
  const Profile left_out = fit_profile(few, gpus_, options);
  const ProfileBlock& with = gemm_block(card);
  const ProfileBlock& without = gemm_block(left_out);
  EXPECT_FALSE(with.own);
  EXPECT_EQ(with.records, (std::map<std::string, std::int64_t>{{"p100_pcie, made by a test", 10},
                                                               {"titanxp, made by a test", 80}}));
  EXPECT_EQ(without.records, (std::map<std::string, std::int64_t>{{"titanxp, made by a test", 80}}));
  const Record large = test::gemm_record("p100_pcie", 4096, 3000, 6000);
  const auto predicted = [&](const Profile& profile) {
    return estimate(kernel_of(large), 1, calibration_of(profile, gpus_.at("p100_pcie"))).total.si() /
           test::true_time(large, gpus_.at("p100_pcie"), test::gemm_truth());
  };
  EXPECT_NEAR(predicted(card), 0.95 / 0.90, 0.03);
  EXPECT_NEAR(predicted(left_out), 0.95 / 0.85, 0.03);
}

TEST_F(FitCommandTest, TwoRunsWriteTheSameBytes) {
  const std::string file = write(records_);
  const auto bytes = [&](const std::string& name) {
    EXPECT_EQ(test::calibrate({"fit", file, "--generic", "-o", path(name)}).exit_code, 0);
    std::ifstream in(path(name));
    return std::string(std::istreambuf_iterator<char>(in), {});
  };
  EXPECT_EQ(bytes("a.yaml"), bytes("b.yaml"));
}

// The fastest of repeated records counts; a line that a killed writer left unfinished is left out. Both are
// said.
TEST_F(FitCommandTest, SaysWhatWasLeftOut) {
  std::vector<Record> records = records_;
  records.push_back(records[0]);
  records.back().time_s *= 2;
  const std::string file = write(records);
  fs::resize_file(file, fs::file_size(file) - 20);
  std::ofstream(file, std::ios::app) << "";
  test::CliResult result = test::calibrate({"fit", file, "--generic", "-o", path("p.yaml")});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr(file + ": the last line is unfinished and was left out\n"));
  const LoadedRecords twice =
      load_records(std::vector{write(records_, "a.csv"), write(records, "b.csv")}, catalog_);
  EXPECT_EQ(twice.records.size(), records_.size());
  EXPECT_THAT(twice.notes, testing::ElementsAre("161 repeats of a call: the fastest was kept"));
  EXPECT_EQ(twice.records[0].time_s, records_[0].time_s);
}

TEST_F(FitCommandTest, MoreRecordsThanAreRead) {
  const std::vector files{write(records_)};
  EXPECT_EQ(load_records(files, catalog_, 160).records.size(), 160u);
  EXPECT_THAT(
      [&] { (void)load_records(files, catalog_, 159); },
      testing::ThrowsMessage<UsageError>(files[0] + ": more than 159 records in all; expected fewer"));
}

TEST_F(FitCommandTest, TooFewRecords) {
  records_.resize(17);  // of p100_pcie
  expect_refused({"fit", write(records_), "-o", path("p.yaml")},
                 "17 records of gemm (cublas8/fp32) on p100_pcie; expected at least 18 for a fit");
  expect_refused({"fit", write(records_), "--generic", "-o", path("p.yaml")},
                 "too few records for a fit: 17 of gemm (cublas8/fp32); expected at least 18 of one");
  records_.resize(1);
  records_[0].op = "copy";
  expect_refused(
      {"fit", write(records_), "-o", path("p.yaml")},
      "too few records for a fit: none of a kernel that has a formula; expected at least 18 of one");
  EXPECT_EQ(files(), 1u);
}

TEST_F(FitCommandTest, WhichGpu) {
  const std::string file = write(records_);
  const std::string out = path("p.yaml");
  expect_refused({"fit", file, "-o", out},
                 "the records are of p100_pcie, titanxp; expected --gpu, --architecture or --generic to say "
                 "for which");
  expect_refused({"fit", file, "--gpu", "p4", "-o", out}, "no record is of p4; expected some, or --without");
  expect_refused(
      {"fit", file, "--gpu", "titanpx", "-o", out},
      "unknown GPU 'titanpx'; did you mean 'titanxp'? ('tbd-sim list gpus' names them; a path to a "
      "YAML file works too)");
  expect_refused(
      {"fit", file, "--architecture", "pascla", "-o", out},
      "--architecture: no record is of a GPU of architecture 'pascla'; expected one of pascal; did "
      "you mean 'pascal'?");
  expect_refused({"fit", file},
                 "fit: expected --output FILE for one profile or --all FOLDER for those of every GPU");
  EXPECT_EQ(files(), 1u);
}

// An output that cannot be written is refused before the fit.
TEST_F(FitCommandTest, OutputThatCannotBeWritten) {
  const std::string file = write(records_);
  expect_refused({"fit", file, "--generic", "-o", "/no/such/folder/p.yaml"},
                 "/no/such/folder/p.yaml: cannot be written: No such file or directory");
  expect_refused({"crossval", file, "-o", "/no/such/folder/e.csv"},
                 "/no/such/folder/e.csv: cannot be written: No such file or directory");
  expect_refused({"fit", file, "--all", file}, file + "/holdout: cannot be created: Not a directory");
  const test::CliResult full = test::calibrate({"fit", file, "--generic", "-o", "/dev/full"});
  EXPECT_EQ(full.exit_code, 2);
  EXPECT_EQ(full.err, "tbd-calibrate: /dev/full: cannot be written: No space left on device\n");
}

TEST_F(FitCommandTest, AnInterruptLeavesNothingBehind) {
  const std::string file = write(records_);
  for (const Arguments& arguments : {Arguments{"fit", file, "--generic", "-o", path("p.yaml")},
                                     Arguments{"crossval", file, "-o", path("e.csv")}}) {
    const test::CliResult result = test::calibrate(arguments, true);
    EXPECT_EQ(result.exit_code, 130);
    EXPECT_EQ(result.err, "tbd-calibrate: interrupted\n");
  }
  EXPECT_EQ(files(), 1u);
}

TEST_F(FitCommandTest, CrossvalInEveryFormat) {
  const std::string file = write(records_);
  const auto run = [&](const std::string& format) {
    const test::CliResult result = test::calibrate(
        {"crossval", file, "--family", "gemm", "--left-out", "shapes", "--quick", "--format", format});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return result.out;
  };
  const auto errors = nlohmann::json::parse(run("json"))["errors"];
  ASSERT_EQ(errors.size(), 1u);
  EXPECT_EQ(errors[0]["left_out"], "shapes");
  EXPECT_EQ(errors[0]["calls"], 160);
  EXPECT_LT(errors[0]["formula"].get<double>(), 0.03);
  EXPECT_LT(errors[0]["formula"].get<double>(), errors[0]["constant"].get<double>());
  EXPECT_THAT(run("csv"), HasSubstr("\ngemm,made by a test,fp32,shapes,,160,"));
  EXPECT_THAT(run("table"), HasSubstr("errors in %"));
}

TEST_F(FitCommandTest, CrossvalOfWhatThereIsNot) {
  const std::string file = write(records_);
  const std::vector<std::string> families(kFamilyNames.begin(), kFamilyNames.end());
  expect_refused({"crossval", file, "--family", "gem"}, "--family: 'gem' is unknown; expected one of " +
                                                            joined(families) + "; did you mean 'gemm'?");
  expect_refused(
      {"crossval", file, "--left-out", "shape"},
      "--left-out: 'shape' is unknown; expected one of shapes, gpu, gpu_one_gemm, largest_batch; did "
      "you mean 'shapes'?");
  expect_refused({"crossval", file, "--family", "convolution"},
                 "no record is of a kernel that is fitted, or there is nothing to leave out");
}

}  // namespace
}  // namespace tbdsim
