#include "calibrate/samples/launch_floor.h"

#include <gtest/gtest.h>

#include "calibrate/fit/family_fit.h"
#include "costmodel/families/stream.h"

namespace tbdsim {
namespace {

constexpr double kFloor = 3e-5;

TEST(LaunchFloor, ShortKernelsShowTheFloorOnly) { EXPECT_NEAR(shown_time(1e-6, kFloor), kFloor, 1e-9); }

// A kernel of 10 ms hides the 15 us in which the host submits the second event.
TEST(LaunchFloor, LongKernelsHideTheSubmission) {
  EXPECT_NEAR(shown_time(1e-2, kFloor), 1e-2 + kFloor - kEventSubmission, 1e-9);
}

TEST(LaunchFloor, KernelsAndFloorsAreFoundAgain) {
  for (const double kernel : {5e-6, 1.5e-5, 4e-5, 1e-3}) {
    EXPECT_NEAR(kernel_behind(shown_time(kernel, kFloor), kFloor), kernel, 1e-9);
    EXPECT_NEAR(floor_behind(shown_time(kernel, kFloor), kernel), kFloor, 1e-12);
    const double step = 1e-9;
    const double slope = (shown_time(kernel + step, kFloor) - shown_time(kernel - step, kFloor)) / (2 * step);
    EXPECT_NEAR(shown_slope(kernel), slope, 1e-4);
  }
}

// Two ops with floors of 25 and 40 us on a card that reaches 0.6 of its bandwidth: all three are found.
TEST(LaunchFloor, EachOpHasItsOwn) {
  std::array<double, kParameterCount<StreamFamily>> truth;
  for (std::size_t i = 0; i < truth.size(); ++i) truth[i] = StreamFamily::parameters[i].start;
  truth[StreamFamily::kBandwidth] = 0.6;
  std::vector<Sample<StreamFamily>> samples;
  for (double elements = 1e4; elements < 1e9; elements *= 1.5) {
    for (const auto& [op, floor] : {std::pair{"add", 2.5e-5}, std::pair{"relu", 4e-5}}) {
      Sample<StreamFamily> s;
      s.call = {.columns = elements, .read_bytes = 8 * elements, .written_bytes = 4 * elements};
      s.hardware = {.sm_count = 30, .peak = 1e13, .bandwidth = 5e11, .l2_bytes = 3e6, .clock = 1.5e9};
      s.gpu = "card";
      s.op = op;
      s.floor = true;
      s.time_s = shown_time(
          kernel_time<StreamFamily>(s.call, s.hardware, AchievedFraction<double>{1, 1}, truth).parts.total,
          floor);
      samples.push_back(s);
    }
  }
  FitOptions options;
  options.gpus["card"].bandwidth.sd = 0;
  const FamilyFit fit = fit_family<StreamFamily>(samples, options);
  EXPECT_NEAR(fit.parameters[StreamFamily::kBandwidth], 0.6, 0.006);
  EXPECT_NEAR(fit.gpus.at("card").floors.at("add"), 2.5e-5, 5e-7);
  EXPECT_NEAR(fit.gpus.at("card").floors.at("relu"), 4e-5, 8e-7);
}

}  // namespace
}  // namespace tbdsim
