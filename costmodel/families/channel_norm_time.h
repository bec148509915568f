// The least time of a batch norm (seconds) that the instructions of its thread blocks take.
//
// NCHW images, `channels` > 0: a thread block takes a whole channel (cuDNN's bn_fw_tr_1C11_kernel_NCHW and
// bn_bw_1C11_kernel; PyTorch's batch_norm_collect_statistics_kernel and batch_norm_backward_kernel). Few
// channels leave most of the GPU idle:
//
//   seconds = numbers / (channels * numbers_per_clock * clock)
//
// numbers: read and written, those read twice counted twice; numbers_per_clock: of a block. Measured by
// MXNet 1.5 on a V100 at 1530 MHz, fp32, two shapes of 3 channels, which agree within 0.5 %
// (mxnet_opperf_v100): 3.6 forward, 2.96 backward. In half precision a block passes as many numbers, half the
// bytes: with these two constants timm's LCNet-0.5, 0.75 and HRNet-W18 on an RTX 3090 (AMP, NCHW; rows of the
// fit quarter) are 2, -4 and 6 % fast, 51, 22 and 20 % without; 2.4 and 5 instead of 3.6 raise the median
// error of the quarter. PyTorch's own kernels (`elements`), bf16 on an H100, 49 shapes: statistics 0.6,
// gradients 1.29.
//
// On Hopper the blocks of four channels share a multiprocessor, of two where a block keeps its channel, and
// further channels wait for a next round; memory takes its time beside them:
//
//   seconds = ceil(channels / (4 * SMs)) * numbers / (channels * numbers_per_clock * clock)
//
// with 2.6 numbers a clock forward, 1.7 backward, 6 of kept channels: 584 batch norms of cuDNN in the steps
// of 22 networks on this project's H100 (step_kernels), medians 3 and 5 % backward (fp16, fp32), 9 % forward,
// 17 to 25 % where channels are kept.
//
// NHWC images (`pixels`): each pixel takes clocks of a multiprocessor, however few its channels; 171 shapes
// of half precision on the same H100 (cuDNN's batchnorm_fwtr_nhwc_semiPersist and bwtr): 17.4 forward, 25
// backward.
#pragma once

#include <cmath>

#include "costmodel/call.h"
#include "costmodel/hardware.h"

namespace tbdsim {

// Hopper, and Blackwell's data-centre GPUs.
[[nodiscard]] inline bool is_like_hopper(double compute_capability) {
  return compute_capability >= 90 && compute_capability < 120;
}

[[nodiscard]] inline double numbers_of(const StreamCall& call) {
  return (call.read_bytes + call.written_bytes) / call.element_bytes;
}

// Numbers that a thread block reads and writes in a clock.
[[nodiscard]] inline double numbers_of_a_block(const StreamCall& call, double compute_capability) {
  constexpr double kHopper = 90;
  const bool forward = call.phase == Phase::forward;
  if (call.access == Access::elements) return forward ? 0.6 : 1.29;
  const bool waits_longer = compute_capability >= kHopper;  // clocks of a memory access
  if (forward) return waits_longer ? 2.6 : 3.6;
  return waits_longer ? 1.7 : 2.96;
}

[[nodiscard]] inline double channel_norm_time(const StreamCall& call, const Hardware& hardware) {
  if (call.channels == 0 || call.access == Access::pixels) return 0;
  const double rate = numbers_of_a_block(call, hardware.compute_capability) * hardware.clock;
  return numbers_of(call) / (call.channels * rate);
}

// True for a batch norm whose blocks keep a channel in half precision (bn_fw_tr_1C11_singleread, bn_bw_1C11_
// singleread), which memory sends once: up to 128 KiB of x, 192 of x and dy, on the same H100. Those of fp32
// take as long as reading it twice.
[[nodiscard]] inline bool holds_channels(const StreamCall& call) {
  constexpr double kForward = 128 * 1024, kBackward = 192 * 1024, kHalf = 2;
  if (call.channels == 0 || call.access != Access::vectors || call.element_bytes != kHalf) return false;
  if (call.written_bytes == 0) return false;
  const double most = call.phase == Phase::forward ? kForward : kBackward;
  return call.read_bytes / 2 / call.channels <= most;
}

// Seconds that the rounds of blocks of whole channels take on GPUs like Hopper.
[[nodiscard]] inline double channel_rounds_time(const StreamCall& call, const Hardware& hardware) {
  constexpr double kKept = 6;  // numbers a clock
  const bool keeps = holds_channels(call);
  const double at_once = hardware.sm_count * (keeps ? 2 : 4);
  const double rate = keeps ? kKept : numbers_of_a_block(call, hardware.compute_capability);
  return std::ceil(call.channels / at_once) * numbers_of(call) / (call.channels * rate * hardware.clock);
}

// Seconds that multiprocessors take for the pixels of NHWC images; 0 for other kernels.
[[nodiscard]] inline double pixel_norm_time(const StreamCall& call, const Hardware& hardware) {
  constexpr double kForward = 17.4, kBackward = 25;
  if (call.access != Access::pixels || call.channels == 0) return 0;
  if (!is_like_hopper(hardware.compute_capability)) return 0;
  const bool forward = call.phase == Phase::forward;
  const double passes = forward ? 3 : 5;  // over the images, one of which writes them
  const double pixels = numbers_of(call) / (passes * call.channels);
  return pixels * (forward ? kForward : kBackward) / (hardware.sm_count * hardware.clock);
}

// Bytes that pass for each byte of a pixel's channels: thread blocks take 128 bytes of it at a time, the last
// of which may hold few channels, and a pixel that begins within a sector of 32 bytes touches one more for
// each. Means over the same shapes; pixels of up to 128 bytes are read as one row.
[[nodiscard]] inline double padded_pixels(const StreamCall& call) {
  constexpr double kBlock = 128, kSector = 32, kMisaligned = 1.6;
  const double bytes = call.channels * call.element_bytes;
  if (call.access != Access::pixels || bytes <= kBlock) return 1;
  const double padding = std::ceil(bytes / kBlock) * kBlock / bytes;
  return std::fmod(bytes, kSector) == 0 ? padding : padding * kMisaligned;
}

// Bytes that a batch norm of `channels` moves on GPUs like Hopper, whose multiprocessors have room for
// channels. Nobody timed these kernels elsewhere; with pixels padded timm's networks on an RTX 3090 (NHWC,
// groups) are further off (docs/accuracy.md).
[[nodiscard, gnu::noinline]] inline double bytes_of_channels(const StreamCall& call) {
  if (holds_channels(call)) return call.read_bytes / 2 + call.written_bytes;
  return (call.read_bytes + call.written_bytes) * padded_pixels(call);
}

}  // namespace tbdsim
