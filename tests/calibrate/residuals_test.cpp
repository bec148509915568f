// Anchors, residuals, clock ratios and interval widths, by hand.
#include "calibrate/fit/residuals.h"

#include <cmath>

#include <gtest/gtest.h>

#include "calibrate/fit/clock_priors.h"
#include "calibrate/fit/generation_fit.h"
#include "calibrate/samples/launch_floor.h"
#include "tests/calibrate/synthetic.h"

namespace tbdsim {
namespace {

const GpuSpecs& gpus() {
  static const GpuSpecs specs = test::specs_of({"titanxp", "p100_pcie"});
  return specs;
}

double peak(const std::string& gpu) { return rate_of(gpus().at(gpu), MathType::fp32).peak.si(); }

// An n x n product at a share of the peak.
Record product(const std::string& gpu, std::int64_t n, double share) {
  Record record = test::gemm_record(gpu, n, n, n);
  record.time_s = 2 * std::pow(static_cast<double>(n), 3) / (share * peak(gpu));
  return record;
}

Samples<GemmFamily> samples(const std::vector<Record>& records) {
  return samples_of<GemmFamily>(records, gpus());
}

// The largest third of 11 are the one of 4000 and three of 0.6; nine in ten of four do not exceed the
// fastest.
TEST(Anchors, OneOfTheLargestThird) {
  std::vector<Record> records = {product("titanxp", 500, 0.95), product("titanxp", 4000, 0.7)};
  for (int i = 0; i < 8; ++i) records.push_back(product("titanxp", 2100 + i, 0.6));
  records.push_back(product("titanxp", 2000, 0.8));
  const ClockPriors clocks = clock_priors(records, gpus());
  const Sample<GemmFamily> any = samples(records).front();
  ASSERT_TRUE(anchor_of(any, clocks));
  EXPECT_NEAR(*anchor_of(any, clocks), 0.7, 1e-12);
  EXPECT_NEAR(clock_of(any, clocks, true).mean, 0.7, 1e-12);
  EXPECT_EQ(clock_of(any, clocks, true).sd, kAnchoredClockSd);
  EXPECT_EQ(clock_of(any, clocks, false).mean, 0.92);  // of 250 W, by the data sheet
}

// A GEMM sets the clock of its own GPU, precision and data set only.
TEST(Anchors, AreOfOneCardAndDataSet) {
  const ClockPriors clocks = clock_priors(std::vector{product("titanxp", 4000, 0.7)}, gpus());
  EXPECT_FALSE(anchor_of(samples({product("p100_pcie", 4000, 0.7)})[0], clocks));
  Record other = product("titanxp", 4000, 0.7);
  other.source = "someone else";
  EXPECT_FALSE(anchor_of(samples({other})[0], clocks));
  EXPECT_EQ(clock_of(samples({other})[0], clocks, true).mean, 0.92);
}

FamilyFit fit_with(double titanxp_clock, double p100_clock) {
  FamilyFit fit;
  fit.parameters = test::gemm_truth().parameters;
  fit.gpus["titanxp"].sustained = {titanxp_clock, 1};
  fit.gpus["p100_pcie"].sustained = {p100_clock, 1};
  return fit;
}

// Both are expected at 0.92: 0.92 and 0.46 are ratios of 1 and 1/2. The median of two is their mean,
// 1/sqrt(2); each is ln(2)/2 away.
TEST(ClockRatio, MedianAndSpreadOverTheGpus) {
  const std::vector<Record> records = {product("titanxp", 1000, 0.5), product("p100_pcie", 1000, 0.5),
                                       product("p100_pcie", 1500, 0.5)};
  ClockPriors clocks = clock_priors(records, gpus());
  const ClockRatio ratio = clock_ratio(samples(records), fit_with(0.92, 0.46), clocks, false);
  EXPECT_NEAR(ratio.median, std::sqrt(0.5), 1e-12);
  EXPECT_NEAR(ratio.sd, std::log(2.0) / 2, 1e-12);
  // Anchored at 0.5 the clocks are 1.84 and 0.92 times as high.
  EXPECT_NEAR(clock_ratio(samples(records), fit_with(0.92, 0.46), clocks, true).median,
              std::sqrt(1.84 * 0.92), 1e-12);
}

// Twice the formula's time is a residual of ln 2.
TEST(ResidualsOf, LogarithmOfMeasuredOverFormula) {
  const FamilyFit fit = fit_with(0.9, 0.9);
  Samples<GemmFamily> one = samples({product("titanxp", 1000, 0.5)});
  one[0].time_s = 2 * formula_of(one[0], fit, fit.gpus.at("titanxp").sustained);
  const auto residuals = residuals_of(one, fit);
  ASSERT_EQ(residuals.size(), 1u);
  EXPECT_NEAR(residuals[0].row.residual, std::log(2.0), 1e-12);
  EXPECT_EQ(residuals[0].row.call, 0);
  EXPECT_EQ(residuals[0].sample, &one[0]);
}

// With a floor of 100 us: 140 us say little of the kernel, 151 us are counted.
TEST(ResidualsOf, TimesThatAreMostlyLaunchFloorAreLeftOut) {
  FamilyFit fit = fit_with(0.9, 0.9);
  fit.gpus["titanxp"].floors["gemm"] = 100e-6;
  Samples<GemmFamily> two = samples({product("titanxp", 1000, 0.5), product("titanxp", 1000, 0.5)});
  two[0].floor = two[1].floor = true;
  two[0].time_s = 140e-6;
  two[1].time_s = 151e-6;
  const auto residuals = residuals_of(two, fit);
  ASSERT_EQ(residuals.size(), 1u);
  EXPECT_EQ(residuals[0].sample, &two[1]);
  const double formula = formula_of(two[1], fit, fit.gpus.at("titanxp").sustained);
  EXPECT_NEAR(residuals[0].row.residual, std::log(kernel_behind(151e-6, 100e-6) / formula), 1e-12);
}

// Rows far apart carry no information about one another: each is off by itself, in deviations of 5 (3-4-5).
// 80 % of six rows are up to the fifth.
TEST(IntervalOf, EightyPercentOfRowsLeftOut) {
  std::vector<ResidualRow> rows;
  for (int i = 1; i <= 6; ++i) rows.push_back({{0, 1, {1e4 * i}}, 0.5 * i, i});
  EXPECT_NEAR(interval_of(ResidualTable(rows), rows, {.amplitude = 3, .length = 1, .nugget = 4}), 2.5 / 5,
              1e-12);
  EXPECT_EQ(interval_of(ResidualTable({}), {}, {}), 1.28);
}

// A card whose calls are all off alike has another clock: that is not what the width is for.
TEST(IntervalBetweenGpus, ACardsOwnMeanDoesNotCount) {
  Samples<GemmFamily> calls = samples({product("titanxp", 1000, 0.5), product("titanxp", 2000, 0.5),
                                       product("titanxp", 4000, 0.5), product("p100_pcie", 1000, 0.5),
                                       product("p100_pcie", 2000, 0.5), product("p100_pcie", 4000, 0.5)});
  std::vector<SampleResidual<GemmFamily>> residuals;
  for (const auto& s : calls) residuals.push_back({{s.features, s.gpu == "titanxp" ? 0.3 : -0.1, 0}, &s});
  EXPECT_NEAR(interval_between_gpus(residuals, {.amplitude = 1e-3, .length = 1, .nugget = 1}), 0, 1e-6);
  residuals[1].row.residual += 1;  // its neighbours explain nothing of it: it is 1 off, in deviations of 1
  EXPECT_GT(interval_between_gpus(residuals, {.amplitude = 1e-3, .length = 1, .nugget = 1}), 0);
  residuals.resize(3);
  EXPECT_EQ(interval_between_gpus(residuals, {.amplitude = 1e-3, .length = 1, .nugget = 1}), 1.28)
      << "of one card alone the width of a normal distribution";
}

Sample<GemmFamily> of_generation(const std::string& gpu, const std::string& block, double capability) {
  Sample<GemmFamily> s;
  s.gpu = gpu;
  s.block = block;
  s.hardware.compute_capability = capability;
  return s;
}

// A Pascal card at cudnn6. One version away there is a Pascal card at cudnn5 (1) and a Volta at cudnn7 (1,
// and 2 for its architecture); other libraries and precisions do not count, nor does the card itself.
TEST(KinOf, TheLeastUnlikeGeneration) {
  const auto held = of_generation("titanxp", "cudnn6/fp32", 61);
  const Samples<GemmFamily> all = {held,
                                   of_generation("titanxp", "cudnn5/fp32", 61),
                                   of_generation("p100_pcie", "cudnn5/fp32", 60),
                                   of_generation("v100_pcie_16gb", "cudnn7/fp32", 70),
                                   of_generation("v100_pcie_16gb", "cudnn6/fp16", 70),
                                   of_generation("v100_pcie_16gb", "torch6/fp32", 70)};
  const auto kin = same_architecture(held, all);
  ASSERT_EQ(kin.size(), 1u);
  EXPECT_EQ(kin[0].gpu, "p100_pcie");
  EXPECT_EQ(other_gpus(held, all).size(), 2u);  // p100_pcie and v100_pcie_16gb of cudnn7
  EXPECT_TRUE(same_architecture(held, {held}).empty());
}

// Residuals of another generation on another architecture are left out.
TEST(TellingOf, OwnGenerationOrOwnArchitecture) {
  const auto held = of_generation("titanxp", "cudnn6/fp32", 61);
  EXPECT_EQ(informative(held, {of_generation("v100_pcie_16gb", "cudnn6/fp32", 70)}).size(), 1u);
  EXPECT_EQ(informative(held, {of_generation("p100_pcie", "cudnn5/fp32", 60)}).size(), 1u);
  EXPECT_EQ(informative(held, {of_generation("v100_pcie_16gb", "cudnn7/fp32", 70)}).size(), 0u);
}

// 0.1, 0.2 and 0.9 on three cards: 0.2. Where the last card's architecture counts twice: between 0.2 and 0.9.
TEST(MediansOverGpus, OfOneCall) {
  const Samples<GemmFamily> cards = {of_generation("a", "cudnn6/fp32", 61),
                                     of_generation("b", "cudnn6/fp32", 61),
                                     of_generation("c", "cudnn6/fp32", 70)};
  const Features call{0, 1, {5}}, other{0, 1, {6}};
  const std::vector<SampleResidual<GemmFamily>> residuals = {{{call, 0.9, 0}, &cards[2]},
                                                             {{call, 0.1, 1}, &cards[0]},
                                                             {{other, -0.3, 2}, &cards[0]},
                                                             {{call, 0.2, 3}, &cards[1]}};
  const auto medians = medians_over_gpus(residuals, 0);
  ASSERT_EQ(medians.size(), 2u);
  EXPECT_DOUBLE_EQ(medians[0].row.residual, 0.2);
  EXPECT_DOUBLE_EQ(medians[1].row.residual, -0.3);
  EXPECT_EQ(medians[1].row.call, 1);
  EXPECT_DOUBLE_EQ(medians_over_gpus(residuals, 7)[0].row.residual, 0.55);
}

TEST(OptionsAround, PriorsAreWhatTheGenerationHas) {
  const FamilyFit shared = fit_with(0.8, 0.9);
  const FitOptions options = options_around<GemmFamily>(shared);
  ASSERT_EQ(options.parameters.size(), shared.parameters.size());
  EXPECT_EQ(options.parameters[0].mean, shared.parameters[0]);
  EXPECT_EQ(options.parameters[0].sd, 0.25);
  EXPECT_EQ(options.gpus.at("titanxp").clock.mean, 0.8);
}

}  // namespace
}  // namespace tbdsim
