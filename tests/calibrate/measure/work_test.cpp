#include "calibrate/measure/plan/work.h"

#include <gtest/gtest.h>

namespace tbdsim::measure {
namespace {

TEST(Work, OfAMatrixProduct) {
  const Work work = work_of({.op = "gemm", .precision = "fp16", .shape = {.m = 2, .n = 3, .k = 5}});
  EXPECT_EQ(work.flops, 60);  // 2 * 2 * 3 * 5
  EXPECT_EQ(work.bytes, 62);  // 2 bytes * (2*5 + 5*3 + 2*3)
}

TEST(Work, OfAConvolution) {
  // 1x8x8x4 -> 16 filters of 3x3, padded: 8x8 outputs. 2 * 16*64 outputs * 4*9 inputs each; groups divide the
  // work.
  PlanPoint point{.op = "conv",
                  .precision = "fp32",
                  .phase = "forward",
                  .shape = {.batch = 1,
                            .channels = 4,
                            .height = 8,
                            .width = 8,
                            .filters = 16,
                            .filter_h = 3,
                            .filter_w = 3,
                            .stride_h = 1,
                            .stride_w = 1,
                            .pad_h = 1,
                            .pad_w = 1,
                            .dilation_h = 1,
                            .dilation_w = 1,
                            .groups = 1}};
  EXPECT_EQ(work_of(point).flops, 73728);
  EXPECT_EQ(work_of(point).bytes, 4 * (256 + 1024 + 576));
  point.shape.groups = 4;
  EXPECT_EQ(work_of(point).flops, 18432);
}

TEST(Work, OfAnLstmStep) {
  // Four gates: 4*8 rows times (8 + 6) columns, 2 flops each, batch 3, 2 steps, 1 layer, 1 direction.
  const Work work = work_of(
      {.op = "lstm",
       .precision = "fp32",
       .phase = "forward",
       .shape = {.batch = 3, .input_size = 6, .hidden = 8, .layers = 1, .directions = 1, .steps = 2}});
  EXPECT_EQ(work.flops, 2 * 32 * 14 * 3 * 2);
}

TEST(Work, PassesOfTheStreamingOps) {
  const RecordShape thousand{.elements = 1000};
  EXPECT_EQ(work_of({.op = "add", .precision = "fp32", .phase = "forward", .shape = thousand}).bytes, 12000);
  EXPECT_EQ(work_of({.op = "adam", .precision = "fp32", .phase = "update", .shape = thousand}).bytes, 28000);
  EXPECT_EQ(work_of({.op = "relu", .precision = "bf16", .phase = "backward_data", .shape = thousand}).bytes,
            6000);
  EXPECT_EQ(work_of({.op = "copy_d2d", .precision = "fp32", .shape = {.bytes = 100}}).bytes, 200);
  EXPECT_EQ(work_of({.op = "launch", .precision = "fp32"}).bytes, 0);
}

TEST(Guess, GrowsWithWorkAndIsNeverFree) {
  const auto seconds = [](std::int64_t size) {
    return guess_seconds(
        {.op = "gemm", .precision = "fp32", .cache = "hot", .shape = {.m = size, .n = size, .k = size}},
        GpuRates{});
  };
  EXPECT_GT(seconds(1), 0.01);
  EXPECT_GT(seconds(8192), seconds(4096));
  // A call of an hour is still only warmed up and repeated five times within the rule's 2 s.
  EXPECT_LT(seconds(2048), 1);
}

}  // namespace
}  // namespace tbdsim::measure
