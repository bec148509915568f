#include "calibrate/measure/run/progress.h"

#include <sstream>

#include <gmock/gmock.h>

namespace tbdsim::measure {
namespace {
using testing::HasSubstr;

TEST(Progress, DrawsABar) {
  EXPECT_EQ(progress_line(120, 240, 90, 480, "conv"),
            "[##########..........]  50 %  120/240  1.5 of 8.0 min  conv");
  EXPECT_EQ(progress_line(0, 0, 0, 0, ""), "[####################] 100 %  0/0  0.0 min  ");
}

TEST(Progress, LogsALinePerFivePercentAndAtTheEnd) {
  std::ostringstream out;
  Progress progress(out, false, 100, 0);
  for (std::size_t i = 0; i <= 100; ++i) progress.show(i, 0.01 * static_cast<double>(i), "x");
  const std::string text = out.str();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 21);  // 0, 5, ... 100 %
  EXPECT_THAT(text, HasSubstr("100 %  100/100"));
}

TEST(Progress, OnATerminalALineIsRedrawnAndMessagesStay) {
  std::ostringstream out;
  Progress progress(out, true, 2, 0);
  progress.show(0, 0, "a long name of a point");
  progress.say("skipped x");
  progress.show(2, 1, "");
  progress.finish();
  EXPECT_THAT(out.str(), HasSubstr("\rskipped x\n\r["));
  EXPECT_EQ(out.str().back(), '\n');
}

TEST(Highlights, KeepTheBestRateOfEachOp) {
  Highlights highlights;
  const PlanPoint point{
      .op = "gemm", .precision = "fp32", .shape = {.m = 1000, .n = 1000, .k = 1000}};  // 2e9 flop
  highlights.add(point, 1e-3);
  highlights.add(point, 0.5e-3);
  highlights.add(point, 0);  // no time: not counted
  EXPECT_THAT(highlights.text(), AllOf(HasSubstr("gemm fp32"), HasSubstr("     2 "), HasSubstr("4.00 T"),
                                       HasSubstr("500.0 us")));
}

}  // namespace
}  // namespace tbdsim::measure
