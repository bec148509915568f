// PyTorch's own kernels and cuDNN's batch norms beside kernels of training steps on this project's H100.
#include "costmodel/families/own_kernel_time.h"

#include <cmath>
#include <utility>

#include <gtest/gtest.h>

#include "costmodel/families/stream.h"

namespace tbdsim {
namespace {

constexpr Hardware kH100{.sm_count = 132, .clock = 1.98e9, .compute_capability = 90};
constexpr double kSerial = 3.651e-7;  // seconds that a thread waits for a load

// An operator with a result of so many numbers, from as many bytes read and written.
StreamCall numbers(double count, double read, double written, double element_bytes, Access access) {
  return {.columns = count,
          .read_bytes = read,
          .written_bytes = written,
          .element_bytes = element_bytes,
          .access = access};
}

double seconds_of_numbers(const StreamCall& call) {
  const double count = (call.read_bytes + call.written_bytes) / call.element_bytes;
  return count / (numbers_per_clock(call, kH100.compute_capability) * kH100.sm_count * kH100.clock);
}

TEST(OwnKernelTime, OneNumberAtATime) {
  // 128 x 256 x 56 x 56 numbers of half precision times one for each channel: 288 us.
  const StreamCall gate = numbers(102760448, 205520896, 205520896, 2, Access::elements);
  EXPECT_NEAR(seconds_of_numbers(gate), 288e-6, 0.15 * 288e-6);
  // 50.3 million numbers from half to single precision, three bytes each in the mean: 156 us.
  const StreamCall cast = numbers(50331648, 100663296, 201326592, 3, Access::elements);
  EXPECT_NEAR(seconds_of_numbers(cast), 156e-6, 0.15 * 156e-6);
  // Parts of three tensors of half precision, 58.1 million numbers that do not lie side by side: 222 us.
  StreamCall parts = numbers(58097664, 116195328, 116195328, 2, Access::elements);
  parts.kind = KernelKind::transpose;
  EXPECT_NEAR(seconds_of_numbers(parts), 222e-6, 0.15 * 222e-6);
  // NHWC images of 64 and six times 32 channels and 56 x 56 pixels, put beside each other: 221 us.
  const StreamCall beside = numbers(102760448, 205520896, 205520896, 2, Access::pixels);
  EXPECT_NEAR(seconds_of_numbers(beside), 221e-6, 0.25 * 221e-6);
  // Twelve images of 196 x 768 numbers of single precision, transposed: 153 us.
  const StreamCall transposed = numbers(19267584, 77070336, 77070336, 4, Access::across);
  EXPECT_NEAR(seconds_of_numbers(transposed), 153e-6, 0.25 * 153e-6);
  EXPECT_GT(numbers_per_clock(numbers(1, 1, 1, 2, Access::vectors), 90), 6);
}

// Windows of 3 x 3 with a stride of 2 over 128 x 64 x 112 x 112 numbers: 416 us forward; backward 9 windows'
// numbers for 4 inputs, 1,139 us.
TEST(OwnKernelTime, PoolsTakeTheirThreadsTime) {
  StreamCall pool{.kind = KernelKind::pooling, .columns = 25690112, .flops = 9 * 25690112.0};
  EXPECT_EQ(window_time(pool, kH100), 0) << "cuDNN's";
  pool.access = Access::elements;
  EXPECT_NEAR(window_time(pool, kH100), 416e-6, 0.1 * 416e-6);
  pool.phase = Phase::backward_data;
  pool.columns = 4 * 25690112;
  EXPECT_NEAR(window_time(pool, kH100), 1139e-6, 0.1 * 1139e-6);
  Hardware wider = kH100;
  wider.sm_count *= 2;
  EXPECT_NEAR(window_time(pool, wider), window_time(pool, kH100) / 2, 1e-12);
}

// Beside bytes and launch, sums of 25,216 x 768 numbers of half precision take 30 us, of 401,408 x 384 of
// single precision 60 us; few rows are not split.
TEST(OwnKernelTime, ColumnsAreSummedInParts) {
  StreamCall sum{.kind = KernelKind::reduction, .rows = 25'216, .columns = 768, .access = Access::columns};
  EXPECT_NEAR(parts_of_columns(sum) * kSerial, 30e-6, 10e-6);
  sum.rows = 401'408;
  sum.columns = 384;
  EXPECT_NEAR(parts_of_columns(sum) * kSerial, 60e-6, 10e-6);
  sum.rows = 32;
  EXPECT_EQ(parts_of_columns(sum), 0);
  sum.access = Access::vectors;
  sum.rows = 401'408;
  EXPECT_EQ(parts_of_columns(sum), 0);
}

StreamCall batch_norm(double images, double channels, double pixels, Access access) {
  const double x = images * channels * pixels * 2;
  return {.kind = KernelKind::elementwise,
          .read_bytes = 2 * x,
          .written_bytes = x,
          .element_bytes = 2,
          .access = access,
          .channels = channels};
}

// NHWC images: windows of 2 x 2 over 128 x 64 x 224 x 224 numbers 1,324 us forward, 2,270 backward; of 3 x 3
// and a stride of 2 over 128 x 192 x 71 x 71 694 us.
TEST(OwnKernelTime, PoolsOfNhwcImages) {
  StreamCall pool{.kind = KernelKind::pooling, .columns = 102760448, .flops = 4 * 102760448.0};
  pool.access = Access::pixels;
  EXPECT_NEAR(window_time(pool, kH100), 1324e-6, 0.1 * 1324e-6);
  const StreamCall wide{
      .kind = KernelKind::pooling, .columns = 30105600, .flops = 9 * 30105600.0, .access = Access::pixels};
  EXPECT_NEAR(window_time(wide, kH100), 694e-6, 0.1 * 694e-6);
  pool.phase = Phase::backward_data;
  pool.columns = 411041792;
  EXPECT_NEAR(window_time(pool, kH100), 2270e-6, 0.1 * 2270e-6);
  EXPECT_EQ(numbers_of_own_kernel(pool), 0);
}

// NHWC in half precision: 16 channels take as long for each pixel as 32; a pixel of 72 channels moves 128
// bytes twice, which begin within sectors.
TEST(ChannelNormTime, PixelsOfFewChannels) {
  const StreamCall few = batch_norm(128, 16, 12'544, Access::pixels);
  const StreamCall more = batch_norm(128, 32, 12'544, Access::pixels);
  EXPECT_EQ(pixel_norm_time(few, kH100), pixel_norm_time(more, kH100));
  EXPECT_NEAR(pixel_norm_time(few, kH100), 118e-6, 0.15 * 118e-6);
  EXPECT_EQ(channel_norm_time(few, kH100), 0);
  EXPECT_EQ(padded_pixels(more), 1);
  EXPECT_EQ(padded_pixels(batch_norm(1, 128, 1, Access::pixels)), 1);
  EXPECT_DOUBLE_EQ(padded_pixels(batch_norm(1, 96, 1, Access::pixels)), 256.0 / 192);
  EXPECT_DOUBLE_EQ(padded_pixels(batch_norm(1, 72, 1, Access::pixels)), 1.6 * 256 / 144);
}

// A channel of 128 images of 14 x 14 pixels in half precision is kept, one of 28 x 28 is not; nor is fp32.
TEST(ChannelNormTime, BlocksKeepShortChannels) {
  StreamCall norm = batch_norm(128, 256, 196, Access::vectors);
  EXPECT_TRUE(holds_channels(norm));
  EXPECT_FALSE(holds_channels(batch_norm(128, 256, 784, Access::vectors)));
  norm.element_bytes = 4;
  EXPECT_FALSE(holds_channels(norm));
}

// cuDNN's gradients on an H100, of channels of 128 images of 28 x 28: up to 128 and 528 fill one round, 576
// two; 156 us in half precision with 128, 236 us in fp32 with 256, 539 us with 576, with 0.89 of the
// memory's 3.35 TB/s.
TEST(ChannelNormTime, BlocksOfChannelsTakeRounds) {
  const auto rounds = [](double channels, double bytes) {
    StreamCall norm{.kind = KernelKind::batch_norm, .phase = Phase::backward_data, .element_bytes = bytes};
    norm.channels = channels;
    norm.read_bytes = 4 * 128 * channels * 784 * bytes;
    norm.written_bytes = norm.read_bytes / 4;
    const double memory = (norm.read_bytes + norm.written_bytes) / (0.89 * 3.35e12);
    return std::pair(channel_rounds_time(norm, kH100), memory);
  };
  const auto total = [&](double channels, double bytes) {
    const auto [blocks, memory] = rounds(channels, bytes);
    return std::hypot(blocks, memory);
  };
  EXPECT_DOUBLE_EQ(rounds(64, 2).first, rounds(528, 2).first);
  EXPECT_DOUBLE_EQ(rounds(576, 2).first, 2 * rounds(528, 2).first);
  EXPECT_NEAR(total(128, 2), 156e-6, 0.1 * 156e-6);
  EXPECT_NEAR(total(256, 4), 236e-6, 0.1 * 236e-6);
  EXPECT_NEAR(total(576, 4), 539e-6, 0.1 * 539e-6);
}

// PyTorch's statistics in bf16 of 128 x 64 x 147 x 147 pixels: 2.26 ms; the result of 128 x 1152 x 7 x 7: 90
// us.
TEST(ChannelNormTime, OfPyTorchsOwnKernels) {
  StreamCall moments{.kind = KernelKind::batch_norm,
                     .read_bytes = 128.0 * 64 * 21'609 * 2,
                     .element_bytes = 2,
                     .access = Access::elements,
                     .channels = 64};
  EXPECT_NEAR(channel_norm_time(moments, kH100), 2.26e-3, 0.1 * 2.26e-3);
  StreamCall result{
      .kind = KernelKind::batch_norm, .rows = 128 * 1152, .columns = 49, .access = Access::elements};
  EXPECT_NEAR(window_time(result, kH100), 90e-6, 5e-6);
}

// Layer norms forward in fp32: 401,408 rows of 96 take 632 us, of which memory 105.
TEST(RowNormTime, MomentsTakeTime) {
  StreamCall norm{.kind = KernelKind::layer_norm, .rows = 401'408, .columns = 96};
  norm.flops = 8 * norm.rows * norm.columns;
  EXPECT_NEAR(moments_time(norm, kH100), 632e-6, 0.05 * 632e-6);
  norm.flops /= 2;
  EXPECT_EQ(moments_time(norm, kH100), 0) << "an RMS norm";
}

}  // namespace
}  // namespace tbdsim
