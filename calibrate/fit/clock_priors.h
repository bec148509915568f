// Priors of a GPU's sustained clock, before any fit: from its data sheet, or from its largest measured
// GEMMs.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>

#include "calibrate/fit/family_fit.h"
#include "calibrate/fit/sample_selection.h"
#include "calibrate/records/record.h"
#include "calibrate/samples/samples.h"
#include "costmodel/hardware.h"

namespace tbdsim {

inline constexpr double kAnchoredClockSd = 0.05;

struct ClockPriors {
  // Achieved over quoted flop/s of large GEMMs, by data set, GPU and precision ("set|gpu|fp32"): the 90th
  // percentile of the sixty largest (of the largest third where there are fewer); the fastest of hundreds of
  // milliseconds throttle on boards of low power.
  std::map<std::string, double> anchors;
  std::map<std::string, Prior> expected;  // by GPU and precision ("h200|bf16"), from the data sheet
};
[[nodiscard]] ClockPriors clock_priors(std::span<const Record> records, const GpuSpecs& gpus);

// The anchor of the sample's data set, GPU and precision; none: no large GEMM was measured.
template <class Family>
[[nodiscard]] std::optional<double> anchor_of(const Sample<Family>& sample, const ClockPriors& clocks);

// The anchor where `anchored` and there is one, else the data sheet's.
template <class Family>
[[nodiscard]] Prior clock_of(const Sample<Family>& sample, const ClockPriors& clocks, bool anchored);

// Ratio of fitted clock to clock_of(): the median over the GPUs, and the standard deviation of its logarithm.
struct ClockRatio {
  double median = 1;
  double sd = 0;
};
template <class Family>
[[nodiscard]] ClockRatio clock_ratio(const Samples<Family>& samples, const FamilyFit& fit,
                                     const ClockPriors& clocks, bool anchored);

}  // namespace tbdsim
