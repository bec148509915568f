#include "costmodel/families/stream.h"

#include <gtest/gtest.h>

namespace tbdsim {
namespace {

using Parameters = std::array<double, kParameterCount<StreamFamily>>;
constexpr AchievedFraction<double> kFull{1, 1};

// 100 B/s of memory, 10 SMs of 2 Hz (1280 B/s of L2), no compute limit worth naming.
Hardware small(double l2_bytes) {
  return {.sm_count = 10,
          .peak = 1e6,
          .bandwidth = 100,
          .l2_bytes = l2_bytes,
          .clock = 2,
          .compute_capability = 61,
          .bus = 10};
}

// Half the memory bandwidth (HBM: all of it), all of L2's, 1 s of launch.
Parameters simple() {
  Parameters p;
  p.fill(1);
  p[StreamFamily::kBandwidth] = 0.5;
  p[StreamFamily::kTensors] = 1e-9;
  return p;
}

double seconds(const StreamCall& call, const Hardware& hardware, const Parameters& p) {
  return kernel_time<StreamFamily>(call, hardware, kFull, p).parts.total;
}

// 400 + 100 bytes at 50 B/s, and a launch: 11 s; at 100 B/s from Volta on with HBM: 6 s.
TEST(StreamTime, BytesOverBandwidth) {
  const StreamCall add{.columns = 50, .read_bytes = 400, .written_bytes = 100};
  Hardware hardware = small(1);
  EXPECT_NEAR(seconds(add, hardware, simple()), 11, 1e-9);
  hardware.hbm = true;
  EXPECT_NEAR(seconds(add, hardware, simple()), 11, 1e-9) << "a P100 has HBM, not its efficiency";
  hardware.compute_capability = 70;
  EXPECT_NEAR(seconds(add, hardware, simple()), 6, 1e-9);
}

// Tensors of exactly `tensors_in_l2` L2 sizes: half the 2560 bytes over the memory bus (25.6 s), half from L2
// (1 s), and a launch.
TEST(StreamTime, HalfOfATensorIsFoundInL2) {
  Parameters p = simple();
  p[StreamFamily::kTensors] = 0.5;
  const StreamCall relu{.columns = 320, .read_bytes = 1280, .written_bytes = 1280};
  EXPECT_NEAR(seconds(relu, small(5120), p), 1 + 25.6 + 1, 1e-9);
}

// A norm of 160 rows of 100 bytes, all in flight (10 SMs hold 16 blocks of 128 threads each): 16,000 bytes
// are read, as many again, 16,000 written. With rows for exactly L2, half of the second reading passes the
// bus: 40,000 bytes at 50 B/s, 8,000 at 1280 B/s.
TEST(StreamTime, RowsAreReadAgain) {
  StreamCall norm{.kind = KernelKind::layer_norm, .rows = 160, .columns = 25};
  norm.read_bytes = norm.written_bytes = 16'000;
  EXPECT_NEAR(seconds(norm, small(16'000), simple()), 1 + 800 + 6.25, 1e-6);
  EXPECT_NEAR(seconds(norm, small(1), simple()), 1 + 960, 1e-6) << "nothing is kept";
  norm.phase = Phase::backward_weights;
  EXPECT_NEAR(seconds(norm, small(1), simple()), 1 + 640, 1e-6) << "sums go over columns once";
}

TEST(StreamTime, SoftmaxGoesBackWithAFactor) {
  Parameters p = simple();
  p[StreamFamily::kSoftmaxBackward] = 0.5;
  StreamCall softmax{.kind = KernelKind::softmax, .rows = 10, .columns = 10};
  softmax.read_bytes = 500;
  EXPECT_NEAR(seconds(softmax, small(1), p), 1 + 10, 1e-6);
  softmax.phase = Phase::backward_data;
  EXPECT_NEAR(seconds(softmax, small(1), p), 1 + 20, 1e-6);
}

TEST(StreamTime, OnlyLongRowsOfASoftmaxAreReadAgain) {
  StreamCall softmax{.kind = KernelKind::softmax, .rows = 1, .columns = 1'024};
  EXPECT_EQ(rereads(softmax), 0);
  softmax.columns = 1'025;
  EXPECT_EQ(rereads(softmax), 2) << "maximum, sum, result";
  softmax.phase = Phase::backward_data;
  EXPECT_EQ(rereads(softmax), 1);
}

// 4,096 columns take 1,024 threads: 2 rows on each of 10 SMs, 1 on SMs of 1,024 threads (Turing); never more
// rows than there are.
TEST(StreamTime, RowsInFlight) {
  StreamCall softmax{.kind = KernelKind::softmax, .rows = 100, .columns = 4'096};
  softmax.read_bytes = 100 * 16'384.0;
  Hardware hardware = small(1);
  EXPECT_EQ(bytes_in_flight(softmax, hardware), 20 * 16'384);
  hardware.compute_capability = 75;
  EXPECT_EQ(bytes_in_flight(softmax, hardware), 10 * 16'384);
  softmax.rows = 3;
  softmax.read_bytes = 3 * 16'384.0;
  EXPECT_EQ(bytes_in_flight(softmax, hardware), 3 * 16'384);
}

// 100 bytes over a bus of 10 B/s.
TEST(StreamTime, TransfersPassTheBus) {
  const StreamCall copy{.kind = KernelKind::transfer, .read_bytes = 100};
  EXPECT_NEAR(seconds(copy, small(1), simple()), 11, 1e-9);
}

TEST(StreamTime, ClassesWithoutATableRunAsElementwiseTimesAFactor) {
  Parameters p = simple();
  p[StreamFamily::kGather] = 0.5;
  StreamCall call{.columns = 100, .read_bytes = 400, .written_bytes = 400};
  const double elementwise = seconds(call, small(1), p);
  call.kind = KernelKind::transpose;
  EXPECT_NEAR(seconds(call, small(1), p), elementwise, 1e-9);
  call.kind = KernelKind::gather;
  EXPECT_NEAR(seconds(call, small(1), p), 1 + 2 * (elementwise - 1), 1e-9);
}

// Ten SMs of 2 Hz go through 128 numbers a second element by element, 256 B of half precision, and through 58
// of a batch norm, 116 B of half or 232 B of single precision; the memory gives half of its bandwidth.
TEST(StreamTime, HalfPrecisionMovesFewNumbersAClock) {
  StreamCall call{.columns = 400, .read_bytes = 400, .written_bytes = 400, .element_bytes = 2};
  Hardware hardware = small(1);
  hardware.bandwidth = 1'000;
  EXPECT_NEAR(seconds(call, hardware, simple()), 1 + 800 / 256.0, 1e-6);
  call.kind = KernelKind::batch_norm;
  EXPECT_NEAR(seconds(call, hardware, simple()), 1 + 800 / 116.0, 1e-6);
  hardware.bandwidth = 400;
  call.element_bytes = 4;
  EXPECT_NEAR(seconds(call, hardware, simple()), 1 + 800 / 200.0, 1e-6);
}

// Ten SMs of 2 Hz pass 0.31 * 6.4 * 20 = 39.68 elements of a softmax a second, 0.14 * 6.4 * 20 = 17.92
// backward, whatever their bytes.
TEST(StreamTime, SoftmaxPassesFewElementsAClock) {
  StreamCall call{.kind = KernelKind::softmax, .rows = 20, .columns = 20, .element_bytes = 2};
  Hardware hardware = small(1);
  hardware.bandwidth = 1e6;
  for (const double bytes_of_each : {2.0, 4.0}) {
    call.phase = Phase::forward;
    call.read_bytes = call.written_bytes = 400 * bytes_of_each;
    EXPECT_NEAR(seconds(call, hardware, simple()), 1 + 400 / 39.68, 1e-6);
    call.phase = Phase::backward_data;
    EXPECT_NEAR(seconds(call, hardware, simple()), 1 + 400 / 17.92, 1e-6);
  }
}

// The same ten SMs of a Blackwell GPU go through 170 numbers a second, 340 B.
TEST(StreamTime, BlackwellMovesMoreNumbersAClock) {
  StreamCall call{.columns = 400, .read_bytes = 800, .element_bytes = 2};
  Hardware hardware = small(1);
  hardware.bandwidth = 1'000;
  hardware.compute_capability = 100;
  EXPECT_NEAR(seconds(call, hardware, simple()), 1 + 800 / 340.0, 1e-6);
}

// 1,600 rows on 10 SMs of 16 blocks: ten waves of 0.6 us and, for 1,024 numbers, two steps of 0.95 us
// forward, of 1.3 us back; 16 rows take one wave. 2,560 rows of 32 columns: ten steps of 0.5 us, on Hopper
// of 1.25.
TEST(RowNormTime, WaitsForMemoryStepByStep) {
  Hardware hardware = small(1);
  hardware.compute_capability = 90;
  StreamCall norm{.kind = KernelKind::layer_norm, .rows = 1'600, .columns = 1'024, .element_bytes = 2};
  EXPECT_NEAR(row_norm_time(norm, hardware), 10 * (0.6e-6 + 2 * 0.95e-6), 1e-12);
  norm.phase = Phase::backward_data;
  EXPECT_NEAR(row_norm_time(norm, hardware), 10 * (0.6e-6 + 2 * 1.3e-6), 1e-12);
  norm.rows = 16;
  EXPECT_NEAR(row_norm_time(norm, hardware), 0.6e-6 + 2 * 1.3e-6, 1e-12);
  norm.holds_rows = true;
  EXPECT_EQ(row_norm_time(norm, hardware), 0);
  const StreamCall sums{.kind = KernelKind::layer_norm,
                        .phase = Phase::backward_weights,
                        .rows = 2'560,
                        .columns = 32,
                        .element_bytes = 2};
  EXPECT_NEAR(row_norm_time(sums, hardware), 10 * 1.25e-6, 1e-12);
  hardware.compute_capability = 80;
  EXPECT_NEAR(row_norm_time(sums, hardware), 10 * 0.5e-6, 1e-12);
}

// Rows that registers hold are read once, at 0.89 of the bandwidth; sums over columns of two bytes get 0.39
// of it.
TEST(RowNormTime, SharesOfTheBandwidth) {
  StreamCall norm{.kind = KernelKind::layer_norm, .rows = 10, .columns = 400, .holds_rows = true};
  EXPECT_EQ(rereads(norm), 0);
  EXPECT_DOUBLE_EQ(norm_share(norm), 0.89);
  norm.holds_rows = false;
  EXPECT_EQ(rereads(norm), 1);
  EXPECT_DOUBLE_EQ(norm_share(norm), 1);
  norm.phase = Phase::backward_weights;
  EXPECT_DOUBLE_EQ(norm_share(norm), 1);
  norm.element_bytes = 2;
  EXPECT_DOUBLE_EQ(norm_share(norm), 0.39);
}

// 32 images of 3 channels of 256 x 256 numbers, read twice and written on a V100: 18.9 million numbers over 3
// blocks of 3.6 a clock take 1.142 ms, as MXNet measured (1.138 ms).
TEST(ChannelNormTime, ChannelsAreBlocks) {
  const Hardware v100{.sm_count = 80, .clock = 1.53e9, .compute_capability = 70};
  const double bytes = 32.0 * 3 * 256 * 256 * 4;
  StreamCall norm{.kind = KernelKind::batch_norm,
                  .read_bytes = 2 * bytes,
                  .written_bytes = bytes,
                  .element_bytes = 4,
                  .channels = 3};
  EXPECT_NEAR(channel_norm_time(norm, v100), 1.1423e-3, 1e-7);
  norm.element_bytes = 2;  // as many bytes are twice as many numbers
  EXPECT_NEAR(channel_norm_time(norm, v100), 2 * 1.1423e-3, 2e-7);
  norm.channels = 0;
  EXPECT_EQ(channel_norm_time(norm, v100), 0);
}

// 500 bytes at 50 B/s take 10 s; two channels of 125 numbers, 2.96 a clock of 2 Hz, 21.1 s.
TEST(ChannelNormTime, BindsWhereChannelsAreFew) {
  StreamCall norm{.kind = KernelKind::batch_norm,
                  .phase = Phase::backward_data,
                  .read_bytes = 400,
                  .written_bytes = 100,
                  .element_bytes = 2,
                  .channels = 2};
  EXPECT_NEAR(seconds(norm, small(1), simple()), 1 + 250 / (2 * 2.96 * 2), 1e-9);
  norm.channels = 64;
  EXPECT_NEAR(seconds(norm, small(1), simple()), 1 + 10, 1e-9);
}

// 128 samples of 512 numbers take 24 ms at 0.365 us each, 4 samples a 32nd of that, however many the steps.
TEST(StreamTime, SerialKernelsTakeTheirTimeForEachNumber) {
  Parameters p = simple();
  p[StreamFamily::kSerial] = 3.651e-7;
  StreamCall reverse{.kind = KernelKind::gather, .rows = 65'536, .columns = 14, .serial = 65'536};
  EXPECT_NEAR(seconds(reverse, small(1), p), 1 + 0.023927, 1e-6);
  reverse.columns = 20;
  EXPECT_NEAR(seconds(reverse, small(1), p), 1 + 0.023927, 1e-6);
  reverse.serial = reverse.rows = 2'048;
  EXPECT_NEAR(seconds(reverse, small(1), p), 1 + 0.000748, 1e-6);
}

TEST(StreamTime, FallsWithBandwidthAndL2AndGrowsWithBytes) {
  Parameters p;
  for (std::size_t i = 0; i < p.size(); ++i) p[i] = StreamFamily::parameters[i].start;
  for (const KernelKind kind : {KernelKind::elementwise, KernelKind::softmax, KernelKind::layer_norm}) {
    for (double rows = 1; rows < 1e6; rows *= 7) {
      StreamCall call{.kind = kind, .rows = rows, .columns = 3'000};
      call.holds_rows = true;  // other norms may wait for memory (RowNormTime)
      call.read_bytes = call.written_bytes = rows * 12'000;
      const Hardware card{.sm_count = 30,
                          .peak = 1e13,
                          .bandwidth = 5e11,
                          .l2_bytes = 3e6,
                          .clock = 1.5e9,
                          .compute_capability = 61};
      const double time = seconds(call, card, p);
      Hardware better = card;
      better.bandwidth *= 2;
      EXPECT_LT(seconds(call, better, p), time);
      better = card;
      better.l2_bytes *= 2;
      EXPECT_LE(seconds(call, better, p), time);
      call.rows *= 2;
      call.read_bytes *= 2;
      call.written_bytes *= 2;
      EXPECT_GT(seconds(call, card, p), time);
    }
  }
}

}  // namespace
}  // namespace tbdsim
