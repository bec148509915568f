// Power and energy of a training run. A board draws a share of its power limit that depends on the kernel
// that runs, or on what it waits for; hosts and cooling come on top.
//
//   board  = limit * (busy * mean over kernels of their share, by time + sum over waits of time * share) <= limit
//   wall   = (board + kHostShare * limit) * kCoolingFactor
//
// Products and convolutions on tensor cores draw what limits their clock (costmodel/step_power.h), no less
// than other kernels.
#pragma once

#include "simulate/prediction/prediction.h"

namespace tbdsim {

// Shares of the power limit of a board. Estimates from memory of public nvidia-smi readings and papers, which
// 55 steps on an H100 of 209 to 690 W bear out to 7.9 % in the median (docs/model/time_to_accuracy.md):
//   compute  large matrix products in fp32 hold data-centre boards at or just below their limit
//   memory   copies and element-wise kernels: 180 to 200 W of a V100's 300, some 250 W of an A100's 400
//   small    kernels that are over before the board is filled: between memory and waiting
//   waiting  clocks up and nothing to do: 40 to 60 W of a V100's 300, 70 to 85 W of an A100's 400, some 120 W of
//            an H100's 700
//   sync     links and copies at work: Patel et al., Characterizing Power Management Opportunities for LLMs in
//            the Cloud, ASPLOS 2024, sees troughs of 20 to 75 % of the limit between iterations
struct PowerShares {
  double compute = 0.95;
  double memory = 0.65;
  double small = 0.5;
  double waiting = 0.2;
  double sync = 0.4;
};

// Power of the host, its network and its fans over the power limits of its boards. Data sheets give the most
// that a machine draws: DGX-1 V100 3.5 kW with 8 x 300 W (0.46), DGX A100 6.5 kW with 8 x 400 W (1.03), DGX
// H100 10.2 kW with 8 x 700 W (0.82); estimate: half of the mean of these, as training leaves CPUs, disks and
// adapters mostly idle.
inline constexpr double kHostShare = 0.4;
// Power of a data centre over that of its machines: Amazon Web Services, sustainability pages, 1.15 in 2023.
// Uptime Institute's survey of 2023 has a mean of 1.58 over all sorts of data centres.
inline constexpr double kCoolingFactor = 1.15;

struct Power {
  Watts board;  // of all GPUs
  Watts wall;   // with hosts and cooling
};

// The mean over an iteration, of all GPUs.
[[nodiscard]] Power training_power(const Prediction& prediction, const PowerShares& shares = {});
// While GPUs wait, as during start-up and checkpoints.
[[nodiscard]] Power waiting_power(const Prediction& prediction, const PowerShares& shares = {});

struct Energy {
  Joules board;
  Joules wall;
};
[[nodiscard]] Energy operator*(const Power& power, Seconds time);
[[nodiscard]] Energy operator+(const Energy& a, const Energy& b);

}  // namespace tbdsim
