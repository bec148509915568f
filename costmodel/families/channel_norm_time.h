// The least time of a batch norm of NCHW images (seconds), each of whose channels is one thread block:
// cuDNN's bn_fw_tr_1C11_kernel_NCHW and bn_bw_1C11_kernel. Few channels leave most of the GPU idle:
//
//   seconds = numbers / (channels * numbers_per_clock * clock)
//
// numbers: read and written, those read twice counted twice; numbers_per_clock: of a block. Measured by
// MXNet 1.5 on a V100 at 1530 MHz, fp32, two shapes of 3 channels, which agree within 0.5 %
// (mxnet_opperf_v100): 3.6 forward, 2.96 backward; by this project on an H100 at 1980 MHz, up to 100
// channels: 2.5 to 3.05 (fp32) and 1.9 to 2.3 (fp16) forward, 1.56 to 1.95 backward, of which 2.4 and 1.8 are
// taken. In half precision a block passes as many numbers, half the bytes: with these two constants timm's
// LCNet-0.5, 0.75 and HRNet-W18 on an RTX 3090 (AMP, NCHW; rows of the fit quarter) are 2, -4 and 6 % fast,
// 51, 22 and 20 % without; 2.4 and 5 instead of 3.6 raise the median error of the quarter.
#pragma once

#include "costmodel/call.h"
#include "costmodel/hardware.h"

namespace tbdsim {

[[nodiscard]] inline double channel_norm_time(const StreamCall& call, const Hardware& hardware) {
  constexpr double kHopper = 90;
  if (call.channels == 0) return 0;
  const bool waits_longer = hardware.compute_capability >= kHopper;  // clocks of a memory access
  const double forward = waits_longer ? 2.4 : 3.6;
  const double backward = waits_longer ? 1.8 : 2.96;
  const double numbers = (call.read_bytes + call.written_bytes) / call.element_bytes;
  const double numbers_per_clock = call.phase == Phase::forward ? forward : backward;
  return numbers / (call.channels * numbers_per_clock * hardware.clock);
}

}  // namespace tbdsim
