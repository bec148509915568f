// How residuals are interpolated is chosen by leaving rows out; which rows a table keeps.
#include "calibrate/fit/kriging_fit.h"

#include <cmath>
#include <set>

#include <gmock/gmock.h>

#include "calibrate/fit/representative_rows.h"
#include "tests/calibrate/synthetic.h"

namespace tbdsim {
namespace {

using testing::ElementsAre;

Features at(double x, std::uint64_t group = 0) { return {group, 1, {x}}; }

// +0.1 and -0.1: their spread is 0.1. Neighbours of the opposite sign carry no information about a row.
TEST(FitKriging, TheAmplitudeIsTheSpreadOfTheRows) {
  std::vector<ResidualRow> rows;
  for (int i = 0; i < 40; ++i) rows.push_back({at(i), i % 2 == 0 ? 0.1 : -0.1, i});
  EXPECT_NEAR(fit_kriging(ResidualTable(rows)).amplitude, 0.1, 1e-12);
}

// One row of 40 is off by a factor of e^3. Clipped at 3 x 1.4826 x 0.1 = 0.44478:
// sqrt((39 x 0.01 + 0.44478^2) / 40) = 0.1212.
TEST(FitKriging, OutliersAreClipped) {
  std::vector<ResidualRow> rows;
  for (int i = 0; i < 40; ++i) rows.push_back({at(i), i == 20 ? 3 : i % 2 == 0 ? 0.1 : -0.1, i});
  EXPECT_NEAR(fit_kriging(ResidualTable(rows)).amplitude, std::sqrt((0.39 + 0.44478 * 0.44478) / 40), 1e-4);
}

// Mean |residual - estimate| of each row left out, over the mean |residual|.
double left_unexplained(const std::vector<ResidualRow>& rows) {
  const ResidualTable table(rows);
  const Kriging kriging = fit_kriging(table);
  double off = 0, all = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    off += std::abs(rows[i].residual - table.estimate(rows[i].at, kriging, static_cast<int>(i)).mean);
    all += std::abs(rows[i].residual);
  }
  return off / all;
}

// A wave over 12 units, sampled four times a unit: neighbours explain nearly all of it. They explain nothing
// of noise, and following them would increase the error by a factor of up to sqrt(2).
TEST(FitKriging, SmoothResidualsAreFollowedAndNoiseIsNot) {
  std::vector<ResidualRow> smooth, noisy;
  test::Noise noise;
  for (int i = 0; i < 100; ++i) {
    smooth.push_back({at(i / 4.0), 0.3 * std::sin(i / 4.0 * 6.28 / 12), i});
    noisy.push_back({at(i / 4.0), 0.3 * noise(), i});
  }
  EXPECT_LT(left_unexplained(smooth), 0.05);
  EXPECT_LT(left_unexplained(noisy), 1.05);
  EXPECT_GT(left_unexplained(noisy), 0.9);
}

TEST(FitKriging, OfTooFewRowsTheDefault) {
  const Kriging k = fit_kriging(ResidualTable({{at(1), 0.5}, {at(2), 0.5}, {at(3), 0.5}}));
  EXPECT_EQ(k.amplitude, Kriging{}.amplitude);
  EXPECT_EQ(k.nugget, Kriging{}.nugget);
}

// Residuals alike, so that sizes decide: the first (of equals), the other end, then the middle.
TEST(TellingRows, SpreadOverSizes) {
  std::vector<ResidualRow> rows;
  for (int i = 0; i <= 10; ++i) rows.push_back({at(i), 0.2, i});
  EXPECT_THAT(representative_rows(rows, 0.05, 1), ElementsAre(0));
  EXPECT_THAT(representative_rows(rows, 0.05, 2), ElementsAre(0, 10));
  EXPECT_THAT(representative_rows(rows, 0.05, 3), ElementsAre(0, 5, 10));
}

// Sizes alike, residuals 0 to 0.5: the largest first, then what differs most from it, counted in nuggets.
TEST(TellingRows, SpreadOverResiduals) {
  std::vector<ResidualRow> rows;
  for (int i = 0; i <= 5; ++i) rows.push_back({at(0), 0.1 * i, i});
  EXPECT_THAT(representative_rows(rows, 0.05, 1), ElementsAre(5));
  EXPECT_THAT(representative_rows(rows, 0.05, 2), ElementsAre(0, 5));
}

TEST(TellingRows, EveryGroupAndAtMostAsManyAsAsked) {
  std::vector<ResidualRow> rows;
  for (int i = 0; i < 95; ++i) rows.push_back({at(i), 0.01 * i, i});
  for (int i = 95; i < 100; ++i) rows.push_back({at(i, 7), 0.01 * i, i});
  const auto kept = representative_rows(rows, 0.05, 20);
  EXPECT_LE(kept.size(), 20u);
  EXPECT_GE(kept.size(), 19u);
  EXPECT_GE(kept.back(), 95u);
  EXPECT_EQ(std::set<std::size_t>(kept.begin(), kept.end()).size(), kept.size());
  EXPECT_EQ(representative_rows(rows, 0.05, 20), kept);
  EXPECT_EQ(representative_rows(rows, 0.05, 1000).size(), 100u);
  EXPECT_TRUE(representative_rows({}, 0.05, 20).empty());
}

}  // namespace
}  // namespace tbdsim
