// Intervals that hold 80 % of the runs that nobody looked at, with errors whose quantiles are known; runs
// that lack a mechanism; a component that does not converge; tables of errors.
#include "calibrate/framework_fit/interval_fit.h"

#include <cmath>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "calibrate/framework_fit/run_errors.h"
#include "costmodel/kernel_cost.h"
#include "hwspecs/base/error.h"
#include "tests/hwspecs/message_of.h"

namespace tbdsim {
namespace {

constexpr std::size_t index_of(Effect effect) { return static_cast<std::size_t>(effect); }

// A run of a set, a GPU, a version and a model of its own, or of the set that is named.
RunError alone(double error, std::string set = {}) {
  static int count = 0;
  const std::string own = std::to_string(++count);
  RunError run{.log_error = error, .gpu = own, .version = own, .model = own, .set = set.empty() ? own : set};
  run.exposure[index_of(Effect::rest)] = 1;
  return run;
}

// Errors of +-0.01, 0.02, ... 0.10 times `factor`, each of a set of its own.
std::vector<RunError> ten(double factor = 1) {
  std::vector<RunError> runs;
  for (int i = 1; i <= 10; ++i) runs.push_back(alone(factor * 0.01 * i * (i % 2 == 0 ? 1 : -1)));
  return runs;
}

double half_width(const IntervalFit& fit) {
  return kEightyPercent * fit.variance.components[index_of(Effect::rest)];
}

// Eight of the ten are within any half width from 0.08 up to 0.09; their normal one would be 1.28 sqrt(mean
// of squares) = 1.2816 x 0.0620 = 0.0795.
TEST(IntervalFit, EightOfTenAreInside) {
  const double width = half_width(fit_intervals(ten()));
  EXPECT_GE(width, 0.0798);
  EXPECT_LT(width, 0.0902);
}

// One error of ten a hundredfold: eight of ten are inside as before.
TEST(IntervalFit, AnOutlierChangesNothing) {
  std::vector<RunError> runs = ten();
  runs.back().log_error = 10;
  const double width = half_width(fit_intervals(runs));
  EXPECT_GE(width, 0.0798);
  EXPECT_LT(width, 0.0902);
}

// Development rows with half the errors: the width stays that of the others, of development rows it is
// between 0.040 and 0.045, which is 0.44 to 0.56 times the other.
TEST(IntervalFit, DevelopmentRowsDoNotNarrowIt) {
  std::vector<RunError> runs = ten();
  for (RunError run : ten(0.5)) {
    run.development = true;
    runs.push_back(run);
  }
  const IntervalFit fit = fit_intervals(runs);
  EXPECT_GE(half_width(fit), 0.0798);
  EXPECT_LT(half_width(fit), 0.0902);
  EXPECT_GE(fit.of_development, 0.44);
  EXPECT_LE(fit.of_development, 0.565);
}

// No row tells the factor of development rows, however wide the others are.
TEST(IntervalFit, WithoutDevelopmentRowsTheirFactorIsOne) {
  EXPECT_EQ(fit_intervals(ten()).of_development, 1);
  EXPECT_EQ(fit_intervals(ten(3)).of_development, 1);
}

// Ten runs of networks without runs have the errors 0.10, ... 0.19, of which eight are below 0.17 to 0.18;
// 0.08 to 0.09 of it are the rest, so that the class has sqrt(0.17^2 - 0.09^2) to sqrt(0.18^2 - 0.08^2).
TEST(IntervalFit, TheClassOfNetworkIsWhatItAdds) {
  std::vector<RunError> runs = ten();
  for (int i = 0; i < 10; ++i) {
    runs.push_back(alone(0.10 + 0.01 * i));
    runs.back().exposure[index_of(Effect::network)] = 1;
  }
  const IntervalFit fit = fit_intervals(runs);
  const double width = kEightyPercent * fit.variance.components[index_of(Effect::network)];
  EXPECT_GE(width, 0.144 * 0.99);
  EXPECT_LE(width, 0.161 * 1.01);
}

// A set whose median error is 0.5 is named and sets no component.
TEST(IntervalFit, ASetThatLacksAMechanismIsLeftOut) {
  std::vector<RunError> runs = ten();
  for (const double error : {0.4, 0.5, 0.6}) runs.push_back(alone(error, "fast"));
  const IntervalFit fit = fit_intervals(runs);
  EXPECT_THAT(fit.unexplained, testing::ElementsAre("fast"));
  EXPECT_LT(half_width(fit), 0.0902);
}

// Errors of 0.1 that kernels with a deviation of 0.0001 alone should explain: K would have to be 780.
TEST(IntervalFit, AComponentThatDoesNotConvergeIsNamed) {
  std::vector<RunError> runs;
  for (int i = 0; i < 5; ++i) {
    runs.push_back(alone(0.1));
    runs.back().exposure = {};
    runs.back().exposure[index_of(Effect::kernels)] = 0.0001;
  }
  try {
    (void)fit_intervals(runs);
    FAIL() << "a fit that does not converge is accepted";
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("the fit of 'kernels' does not converge"));
  }
}

TEST(RunErrors, TheirTableIsReadAsItWasWritten) {
  std::vector<RunError> runs{alone(-0.25, "a set, quoted")};
  runs[0].exposure[index_of(Effect::exchange)] = 0.125;
  runs.push_back(runs[0]);
  runs[1].development = true;
  std::stringstream table;
  write_run_errors(table, runs);
  std::vector<RunError> read;
  read_run_errors(table, "errors.csv", read);
  ASSERT_EQ(read.size(), 2U);
  EXPECT_FALSE(read[0].development);
  EXPECT_TRUE(read[1].development);
  EXPECT_EQ(read[0].set, "a set, quoted");
  EXPECT_EQ(read[0].log_error, -0.25);
  EXPECT_EQ(read[0].exposure, runs[0].exposure);
}

std::string error_of_table(const std::string& csv) {
  std::istringstream table(csv);
  std::vector<RunError> runs;
  return test::message_of<SpecError>([&] { read_run_errors(table, "errors.csv", runs); });
}

TEST(RunErrors, AmountsAreNumbersFromZero) {
  const std::string message =
      error_of_table("set,gpu,version,model,log_error,amount of rest\na,b,c,d,0.1,-1\n");
  EXPECT_THAT(message, testing::HasSubstr("errors.csv:2"));
  EXPECT_THAT(message, testing::HasSubstr("amount of rest is '-1'; expected a number from 0"));
}

TEST(RunErrors, DevelopmentIsTrueOrFalse) {
  EXPECT_THAT(error_of_table("set,gpu,version,model,log_error,development\na,b,c,d,0.1,yes\n"),
              testing::HasSubstr("development is 'yes'; expected true or false"));
}

}  // namespace
}  // namespace tbdsim
