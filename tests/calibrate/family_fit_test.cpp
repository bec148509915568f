// Fits to times of a formula whose parameters are known.
#include "calibrate/fit/family_fit.h"

#include <gtest/gtest.h>

#include "calibrate/fit/residuals.h"
#include "calibrate/samples/launch_floor.h"
#include "tests/calibrate/synthetic.h"

namespace tbdsim {
namespace {

class FamilyFitTest : public testing::Test {
 protected:
  Samples<GemmFamily> samples(const test::Truth& truth) const {
    return samples_of<GemmFamily>(test::gemm_records(gpus_, truth), gpus_);
  }
  static double expected(std::size_t parameter) { return test::gemm_truth().parameters[parameter]; }

  GpuSpecs gpus_ = test::specs_of({"titanxp", "p100_pcie"});
};

// Mean |ln(formula / time)|.
double mean_error(const Samples<GemmFamily>& samples, const FamilyFit& fit) {
  double off = 0;
  for (const Sample<GemmFamily>& s : samples) {
    off += std::abs(std::log(formula_of(s, fit, fit.gpus.at(s.gpu).sustained) / s.time_s));
  }
  return off / static_cast<double>(samples.size());
}

// One card's rates are held, since efficiency and clock show in their product only; the other's are found.
FitOptions one_card_held(const test::Truth& truth) {
  FitOptions options;
  options.gpus["titanxp"].clock = {truth.rates.at("titanxp").clock, 0};
  options.gpus["titanxp"].bandwidth = {1, 0};
  options.misfit = 0;         // the times are those of the formula, ...
  options.independent = 1e9;  // ... and each tells of its own
  return options;
}

TEST_F(FamilyFitTest, FindsTheParametersAndTheOtherCardsClock) {
  const test::Truth truth = test::gemm_truth();
  const FamilyFit fit = fit_family<GemmFamily>(samples(truth), one_card_held(truth));
  EXPECT_TRUE(fit.converged);
  for (std::size_t i = 0; i < truth.parameters.size(); ++i) {
    EXPECT_NEAR(fit.parameters[i] / expected(i), 1, 0.05) << GemmFamily::parameters[i].name;
    EXPECT_FALSE(fit.at_bound[i]) << GemmFamily::parameters[i].name;
  }
  EXPECT_LT(mean_error(samples(truth), fit), 0.005);
  EXPECT_DOUBLE_EQ(fit.gpus.at("titanxp").sustained.clock, 0.85);
  EXPECT_NEAR(fit.gpus.at("p100_pcie").sustained.clock, 0.95, 0.01);
  EXPECT_EQ(fit.gpus.at("p100_pcie").samples, 80);
}

// Every sample is off by a tenth, one in ten by a factor of three: the loss is robust.
TEST_F(FamilyFitTest, OutliersDoNotMoveIt) {
  const test::Truth truth = test::gemm_truth();
  Samples<GemmFamily> noisy = samples(truth);
  test::Noise noise;
  for (std::size_t i = 0; i < noisy.size(); ++i) {
    noisy[i].time_s *= std::exp(0.1 * noise()) * (i % 10 == 0 ? 3 : 1);
  }
  const FamilyFit fit = fit_family<GemmFamily>(noisy, one_card_held(truth));
  EXPECT_LT(mean_error(samples(truth), fit), 0.04);
}

// A split needs 64 steps of k in each part, so products with k < 128 say nothing of what a split costs.
TEST_F(FamilyFitTest, PriorsHoldWhatTheSamplesDoNotSay) {
  const test::Truth truth = test::gemm_truth();
  const Samples<GemmFamily> shallow =
      where(samples(truth), [](const Sample<GemmFamily>& s) { return s.call.k < 128; });
  ASSERT_EQ(shallow.size(), 40u);
  const FamilyFit fit = fit_family<GemmFamily>(shallow, one_card_held(truth));
  const Parameter& split = GemmFamily::parameters[GemmFamily::kSplit];
  EXPECT_NEAR(fit.parameters[GemmFamily::kSplit] / split.start, 1, 1e-6);
  EXPECT_NE(expected(GemmFamily::kSplit), split.start);
}

// Samples that count as few leave what they say little of to the priors, and the fit says so.
TEST_F(FamilyFitTest, SaysWhatTheSamplesDetermine) {
  const test::Truth truth = test::gemm_truth();
  FitOptions options = one_card_held(truth);
  const FamilyFit much = fit_family<GemmFamily>(samples(truth), options);
  EXPECT_GT(much.determined[TileParameter::kEfficiency], 0.95);
  EXPECT_LT(much.determined[TileParameter::kUnaligned], 0.05) << "every row is a multiple of 16 bytes";
  options.misfit = 0.1;
  options.independent = 5;
  const FamilyFit little = fit_family<GemmFamily>(samples(truth), options);
  for (std::size_t i = 0; i < truth.parameters.size(); ++i)
    EXPECT_LE(little.determined[i], much.determined[i] + 1e-6) << GemmFamily::parameters[i].name;
}

// A prior of no width holds a parameter where it is.
TEST_F(FamilyFitTest, AHeldParameterStays) {
  const test::Truth truth = test::gemm_truth();
  FitOptions options = one_card_held(truth);
  for (const Parameter& p : GemmFamily::parameters) options.parameters.push_back({p.start, p.prior});
  options.parameters[TileParameter::kLaunch] = {2e-6, 0};
  const FamilyFit fit = fit_family<GemmFamily>(samples(truth), options);
  EXPECT_NEAR(fit.parameters[TileParameter::kLaunch], 2e-6, 1e-12);
}

// Four times as fast as the true formula: an efficiency of 3.4 would say so, but 1.3 is the most.
TEST_F(FamilyFitTest, StopsAtBoundsAndSaysSo) {
  const test::Truth truth = test::gemm_truth();
  Samples<GemmFamily> fast = samples(truth);
  for (Sample<GemmFamily>& s : fast) s.time_s /= 4;
  FitOptions options;
  options.gpus["titanxp"].clock = options.gpus["p100_pcie"].clock = {0.9, 0};
  const FamilyFit fit = fit_family<GemmFamily>(fast, options);
  EXPECT_NEAR(fit.parameters[TileParameter::kEfficiency], 1.3, 1e-4);
  EXPECT_TRUE(fit.at_bound[TileParameter::kEfficiency]);
}

// Timed from an idle stream each card adds a floor of its own.
TEST_F(FamilyFitTest, FindsLaunchFloors) {
  const test::Truth truth = test::gemm_truth();
  const std::map<std::string, double> floors = {{"titanxp", 20e-6}, {"p100_pcie", 45e-6}};
  Samples<GemmFamily> shown = samples(truth);
  for (Sample<GemmFamily>& s : shown) {
    s.floor = true;
    s.time_s = shown_time(s.time_s, floors.at(s.gpu));
  }
  FitOptions options = one_card_held(truth);
  for (const double known : truth.parameters) options.parameters.push_back({known, 0.01});
  const FamilyFit fit = fit_family<GemmFamily>(shown, options);
  for (const auto& [gpu, floor] : floors) EXPECT_NEAR(fit.gpus.at(gpu).floors.at("gemm") / floor, 1, 0.05);
}

TEST_F(FamilyFitTest, IsDeterministicWithSeveralStarts) {
  const test::Truth truth = test::gemm_truth();
  FitOptions options = one_card_held(truth);
  options.starts = 2;
  const FamilyFit a = fit_family<GemmFamily>(samples(truth), options);
  const FamilyFit b = fit_family<GemmFamily>(samples(truth), options);
  EXPECT_EQ(a.parameters, b.parameters);
  options.starts = 1;
  EXPECT_LE(a.cost, fit_family<GemmFamily>(samples(truth), options).cost);
}

}  // namespace
}  // namespace tbdsim
