#include "calibrate/measure/statistics/spans.h"

#include <gtest/gtest.h>

#include "calibrate/measure/device/nvml.h"

namespace tbdsim::measure {
namespace {

Span span(const char* name, std::uint64_t start, std::uint64_t end) { return {name, start, end, ""}; }

TEST(Spans, CutsABurstAtItsMarksAndLeavesOutTheRest) {
  // Two calls: 10 + 20 ns with a gap, then 40 ns; a spin before and flushes between belong to neither.
  const auto calls =
      calls_of({span("tbd_spin_kernel", 0, 50), span(kBeginMark, 100, 101), span("a", 110, 120),
                span("b", 130, 150), span(kEndMark, 160, 161), span("tbd_flush_kernel", 170, 180),
                span(kBeginMark, 200, 201), span("c", 210, 250), span(kEndMark, 260, 261)});
  ASSERT_EQ(calls.size(), 2U);
  EXPECT_NEAR(calls[0].busy_s, 30e-9, 1e-15);
  EXPECT_EQ(calls[0].spans, 2);
  EXPECT_EQ(calls[0].kernel, "b");
  EXPECT_NEAR(calls[1].busy_s, 40e-9, 1e-15);
  EXPECT_EQ(calls[1].kernel, "c");
}

TEST(Spans, CountsOverlapsOnce) {
  // [10, 30) and [20, 40) cover 30 ns, [22, 25) lies within; [50, 60) adds 10.
  const auto calls = calls_of({span(kBeginMark, 0, 1), span("a", 10, 30), span("b", 20, 40),
                               span("c", 22, 25), span("d", 50, 60), span(kEndMark, 70, 71)});
  ASSERT_EQ(calls.size(), 1U);
  EXPECT_NEAR(calls[0].busy_s, 40e-9, 1e-15);
  EXPECT_EQ(calls[0].spans, 4);
}

TEST(Spans, SortsRecordsThatArriveOutOfOrder) {
  const auto calls = calls_of({span(kEndMark, 20, 21), span("a", 10, 15), span(kBeginMark, 0, 1)});
  ASSERT_EQ(calls.size(), 1U);
  EXPECT_NEAR(calls[0].busy_s, 5e-9, 1e-15);
}

TEST(Spans, LostMarksGiveFewerCalls) {
  EXPECT_EQ(calls_of({span(kBeginMark, 0, 1), span("a", 10, 15)}).size(), 0U);
  EXPECT_EQ(calls_of({span("a", 10, 15), span(kEndMark, 20, 21)}).size(), 0U);
  EXPECT_EQ(calls_of({}).size(), 0U);
}

TEST(Spans, ACallWithoutKernelsIsEmptyButCounts) {
  const auto calls = calls_of({span(kBeginMark, 0, 1), span(kEndMark, 20, 21)});
  ASSERT_EQ(calls.size(), 1U);
  EXPECT_EQ(calls[0].busy_s, 0);
  EXPECT_EQ(calls[0].kernel, "");
}

TEST(ReadableName, DemanglesAndCuts) {
  EXPECT_EQ(readable_name("_Z3fooi"), "foo(int)");
  EXPECT_EQ(readable_name("maxwell_sgemm_128x64_nn"), "maxwell_sgemm_128x64_nn");
  EXPECT_EQ(readable_name("i"), "i");  // not the type int
  EXPECT_EQ(readable_name(std::string(500, 'x')), std::string(120, 'x'));
}

TEST(NvidiaSmi, ReadsALineOfItsCsv) {
  const Conditions c = parse_smi("1980, 3201, 700.00, 41, 580.159.04\n");
  EXPECT_EQ(c.sm_clock_hz, 1.98e9);
  EXPECT_EQ(c.memory_clock_hz, 3.201e9);
  EXPECT_EQ(c.power_limit_w, 700);
  EXPECT_EQ(c.temperature_c, 41);
  EXPECT_EQ(c.driver, "580.159.04");
}

TEST(NvidiaSmi, LeavesOutWhatTheCardDoesNotTell) {
  const Conditions c = parse_smi("[N/A], 405, [Not Supported], 41, 460.32.03");
  EXPECT_EQ(c.sm_clock_hz, 0);
  EXPECT_EQ(c.memory_clock_hz, 4.05e8);
  EXPECT_EQ(c.power_limit_w, 0);
  EXPECT_EQ(c.driver, "460.32.03");
  EXPECT_EQ(parse_smi("").driver, "");
  EXPECT_EQ(parse_smi(",,,,").driver, "");
}

}  // namespace
}  // namespace tbdsim::measure
