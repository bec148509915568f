// `tbd-sim kernels`: where times come from, and the kernels that no measurement is near.
#include <set>

#include <gmock/gmock.h>

#include "costmodel/families/families.h"
#include "simulate/prediction/predict.h"
#include "simulate/prediction/utilization.h"
#include "simulate/report/kernel_table.h"
#include "tests/simulate/runs_fixture.h"
#include "tests/support/cli.h"
#include "tests/support/temp_dir.h"

namespace tbdsim {
namespace {

using testing::HasSubstr;

template <class Family>
ProfileBlock block_of(const std::string& generation) {
  ProfileBlock block;
  block.generation = generation;
  block.own = true;
  for (const Parameter& parameter : Family::parameters) block.parameters.push_back(parameter.start);
  return block;
}

// A profile in which products have formulas, those of one call a measurement, and all else is a roofline.
class Kernels : public testing::Test {
 protected:
  Kernels() {
    SpecCache specs = test::source_specs();
    const Prediction p = predict({.model = "resnet50",
                                  .framework = "tensorflow",
                                  .gpu = "titanxp",
                                  .batch = 64,
                                  .profile = "uncalibrated"},
                                 specs);
    ProfileBlock products = block_of<GemmFamily>("cublas8");
    for (const Kernel& kernel : p.iterations[0].step->kernels) {
      if (kernel.kind != KernelKind::gemm) continue;
      const auto call = std::get<GemmCall>(call_of(kernel, 64));
      products.measured = {call};
      products.residuals = ResidualTable({{GemmFamily::features(call), 0.1, 0}});
    }
    Profile profile;
    profile.title = "partly measured";
    profile.calibrated = true;
    profile.families[index_of_family<GemmFamily>()] = {products};
    profile.sources = {{"families", "a test"}};
    file_ = directory_.write("partly.yaml", write_profile(profile)).string();
  }

  std::vector<std::string> arguments(const std::vector<std::string>& more) const {
    std::vector<std::string> all = {"kernels", "resnet50", "--framework", "tensorflow", "--gpu",
                                    "titanxp", "--batch",  "64",          "--profile",  file_};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  std::vector<test::Row> rows(const std::vector<std::string>& more) const {
    std::vector<std::string> csv = more;
    csv.insert(csv.end(), {"--format", "csv"});
    return test::rows_of(test::run(arguments(csv)).out);
  }

  test::TempDir directory_;
  std::string file_;
};

TEST_F(Kernels, FromListsThoseOfAProvenance) {
  const auto all = rows({});
  std::map<std::string, std::size_t> counts;
  for (const auto& row : all) ++counts[row.at("provenance")];
  EXPECT_GT(counts["measured"], 0u);
  EXPECT_GT(counts["modelled"] + counts["interpolated"], 0u);
  EXPECT_GT(counts["roofline"], 0u);
  for (const auto& [provenance, count] : counts) {
    const auto some = rows({"--from", provenance});
    EXPECT_EQ(some.size(), count);
    for (const auto& row : some) EXPECT_EQ(row.at("provenance"), provenance);
  }
  EXPECT_EQ(rows({"--from", "measured,roofline"}).size(), counts["measured"] + counts["roofline"]);
}

// The shares of the time in the line above the table, with that of the idle GPU, add up to all of it; those
// of kernels to the time the GPU is busy.
TEST_F(Kernels, SaysWhereTheTimeComesFrom) {
  const test::CliResult result = test::run(arguments({"--from", "measured"}));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  std::map<std::string, double> shares;
  for (const auto& row : rows({})) shares[row.at("provenance")] += std::stod(row.at("share"));
  double sum = 0;
  for (const auto& [provenance, share] : shares) {
    char expected[64];
    std::snprintf(expected, sizeof expected, "%s %.1f %%", provenance.c_str(), 100 * share);
    EXPECT_THAT(result.out, HasSubstr(expected));
    sum += share;
  }
  char idle[64];
  std::snprintf(idle, sizeof idle, "GPU idle %.1f %%", 100 * (1 - sum));
  EXPECT_THAT(result.out, HasSubstr(idle));
  double kernels = 0;
  for (const auto& row : rows({})) {
    if (row.at("kind") != "transfer") kernels += std::stod(row.at("share"));
  }
  SpecCache specs = test::source_specs();
  const Prediction p = predict(
      {.model = "resnet50", .framework = "tensorflow", .gpu = "titanxp", .batch = 64, .profile = file_},
      specs);
  EXPECT_NEAR(kernels, gpu_utilization(activity_of(p)), 1e-8);
  EXPECT_LT(kernels, 1);
}

TEST_F(Kernels, FitTheScreenWhereSourcesDiffer) {
  for (const char* model : {"deep_speech2", "resnet50", "transformer"}) {
    std::istringstream lines(
        test::run_on_terminal({"kernels", model, "--gpu", "titanxp", "--batch", "64", "--profile", file_})
            .out);
    for (std::string line; std::getline(lines, line);) ASSERT_LE(line.size(), kScreenWidth) << line;
  }
}

TEST_F(Kernels, FromWhatThereIs) {
  const test::CliResult unknown = test::run(arguments({"--from", "modeled"}));
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_EQ(unknown.err,
            "tbd-sim: --from: 'modeled' is unknown; expected one of measured, interpolated, transferred, "
            "modelled, roofline; did you mean 'modelled'?\n");
  EXPECT_EQ(test::run(arguments({"--from", "roofline", "--unique"})).err,
            "tbd-sim: --from lists kernels one by one; expected no --unique, --plan, --by or --below-average "
            "beside "
            "it\n");
}

}  // namespace
}  // namespace tbdsim
