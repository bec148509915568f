// Costs of a step on GPUs that differ in clocks and bandwidths only. The work of a convolution's algorithms
// is computed once: later costs at other rates only multiply and compare, which makes a sweep over rates 1.5
// times as fast (ResNet-50 on MXNet: 14 instead of 21 us a point).
#pragma once

#include <vector>

#include "costmodel/estimate.h"
#include "costmodel/families/conv_work.h"

namespace tbdsim {

// The work of a step's convolutions on a GPU of one count of SMs and one limit of power. Valid for one step,
// batch and profile.
struct ConvWorkCache {
  struct Option {
    Choice choice;
    ConvWork<double> work;
    double workspace = 0;  // bytes
    double executed = 0;   // operations, of physical_limit.h
    double operand_bytes = 0;
  };
  struct Options {
    int model = 0;  // of those of the convolutions, counted along FamilyModel::next
    std::vector<Option> all;
  };
  int sm_count = 0;
  std::vector<PowerLimit> power;    // of the convolutions' models
  std::vector<Options> of_kernels;  // as TrainingStep::kernels; empty: not computed, or no convolution
};

// The same as estimate(step, batch, calibration, factors). `costs`: those of the same step and batch at other
// rates, whose residuals remain; `work`: filled in where it is empty.
[[nodiscard]] std::vector<KernelCost> estimate_again(const TrainingStep& step, double batch,
                                                     const Calibration& calibration,
                                                     std::vector<KernelCost> costs, ConvWorkCache& work,
                                                     const KernelFactors& factors = no_factors(),
                                                     EstimateCache* cache = nullptr);

}  // namespace tbdsim
