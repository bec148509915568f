// Recurrent layers in one library call: a GEMM with the state's weights for each step, one after another.
//
//   W       = gates * hidden^2 weights, B = W * element bytes
//   compute = 2 * W * max(batch, 16) / (peak * clock) * (1 + share * (1 / efficiency - 1))       per step
//   memory  = B * rereads * outside / (bandwidth * fraction)                                     per step
//   step    = overhead / boost clock + (compute^4 + memory^4)^(1/4)
//   rereads = ceil(batch / tile): the tile is 8, 32 or 128 sequences wide for batches up to 16, up to 64, above
//   outside = 1 / (1 + (cached * L2 / B)^2): the fraction of W that L2 does not keep from step to step
//
//   forward, backward_data:  call + steps * step + input GEMM
//   backward_weights:        call + one GEMM over all steps
//   input GEMM (inputs > 0)  2 * gates * hidden * inputs * batch * steps / (peak * clock)
//                            * (1 + share * (1 / product - 1))
//
// Times in seconds; peak in operations and bandwidth in bytes a second, clock: sustained share of the peak;
// efficiency, fraction, product, cached, overhead (clocks), call (s): fitted. share: of its generation's full
// rate at which a GPU multiplies (hardware.h, rate_share), because all that is not multiplication takes as
// many clocks there (thread_blocks.h). The 4-norm is a sharper maximum than the 2-norm of GEMMs, at most 19 %
// above the larger time.
//
// Batches of 17-32 have efficiencies of their own: cuDNN 5 and 6 choose kernels there that run backward at a
// seventh of the peak (DeepBench), as slow on cards with twice the bandwidth. The re-reads explain why 16
// sequences take twice the time of 8, and both scale with bandwidth, once W is far beyond L2.
#pragma once

#include <algorithm>

#include "costmodel/call.h"
#include "costmodel/families/kernel_time.h"

namespace tbdsim {

struct RecurrentFamily {
  using Call = RecurrentCall;
  using Sizes = Call;
  static constexpr std::string_view name = "recurrent";
  static constexpr bool persistent = false;
  enum : std::size_t {
    kForward,
    kBackward,
    kNarrowForward,
    kNarrowBackward,
    kProduct,
    kForwardBandwidth,
    kBackwardBandwidth,
    kCached,
    kForwardStep,
    kBackwardStep,
    kCall
  };
  static constexpr std::string_view kDataSheet = "no more than the data sheet's";
  static constexpr auto parameters = std::to_array<Parameter>({
      {"forward", 0.4, 0.2, 1.1, "", "share of the sustained peak of a step's product"},
      {"backward", 0.9, 0.2, 1.1, "", "the same, backward"},
      {"narrow_forward", 0.5, 0.05, 1.1, "", "the same, forward with 17-32 sequences", 0.5, kBoostLimit},
      {"narrow_backward", 0.5, 0.05, 1.1, "", "the same, backward with 17-32 sequences"},
      {"product", 0.95, 0.3, 1.2, "", "share of the sustained peak of products over all steps"},
      {"forward_bandwidth", 0.5, 0.1, 1.0, "", "share of the memory bandwidth, forward", 0.5, kDataSheet},
      {"backward_bandwidth", 0.5, 0.1, 1.0, "", "share of the memory bandwidth, backward", 0.5, kDataSheet},
      {"cached", 1, 0.2, 5, "", "half of weights of so many L2 sizes is found there"},
      {"forward_step", 3e-5, 1e-6, 3e-4, "s", "each step beside its product, at 1.4 GHz boost"},
      {"backward_step", 4e-5, 1e-6, 3e-4, "s", "the same, backward"},
      {"call", 1.5e-4, 1e-6, 2e-3, "s", "each call", 1},
  });

  template <class Visit>
  static void for_each_choice(const Call&, const Hardware&, Visit visit) {
    visit(Choice{.algorithm = Algorithm::recurrent});
  }
  template <class T>
  static TimeParts<T> time(const Call& call, const Choice& choice, const Hardware& hardware,
                           const AchievedFraction<T>& sustained, std::span<const T> p);
  static double workspace_bytes(const Call&, const Choice&) { return 0; }
  static double state_weights(const Call& call) { return call.gates * call.hidden * call.hidden; }
  static double flops(const Call& call) {
    return 2 * (state_weights(call) + call.gates * call.hidden * call.inputs) * call.batch * call.steps;
  }
  static double executed(const Sizes& call, const Choice&) { return flops(call); }
  // The state's weights are read again at every step, all else once.
  static double bytes(const Call& call) {
    const double readings = call.phase == Phase::backward_weights ? 1 : call.steps;
    return bytes_of(call, readings);
  }
  static double operand_bytes(const Call& call) { return bytes_of(call, 1); }
  static std::uint64_t group(const Call& call) { return static_cast<std::uint64_t>(call.phase); }
  static Features features(const Call& call);

 private:
  // `weight_readings`: how often the state's weights are read.
  static double bytes_of(const Call& call, double weight_readings) {
    const double input_weights = call.gates * call.hidden * call.inputs;
    const double vectors = call.inputs + (call.gates + 1) * call.hidden;  // numbers of a sample and step
    const double activations = call.batch * call.steps * vectors;
    return call.element_bytes * (state_weights(call) * weight_readings + input_weights + activations);
  }
  template <class T>
  static TimeParts<T> steps(const Call& call, const Hardware& hardware, const AchievedFraction<T>& sustained,
                            std::span<const T> p);
};

inline constexpr double kThinBatch = 16;     // sequences; narrower products take as long
inline constexpr double kStepClock = 1.4e9;  // Hz

// Seconds for one multiplication or addition.
template <class T>
[[nodiscard]] T operation_time(const Hardware& hardware, const AchievedFraction<T>& sustained,
                               const T& efficiency) {
  return (1.0 + hardware.rate_share * (1.0 / efficiency - 1.0)) / (hardware.peak * sustained.clock);
}

// Number of times that a step's GEMM reads all weights.
[[nodiscard]] inline double weight_readings(double batch) {
  const double tile = batch <= 16 ? 8 : batch <= 64 ? 32 : 128;
  return std::ceil(batch / tile);
}

// Seconds of all steps.
template <class T>
TimeParts<T> RecurrentFamily::steps(const Call& call, const Hardware& hardware,
                                    const AchievedFraction<T>& sustained, std::span<const T> p) {
  using std::sqrt;
  const bool forward = call.phase == Phase::forward;
  const bool narrow = call.batch > 16 && call.batch <= 32;
  const double weights = state_weights(call);
  const std::size_t efficiency_of_narrow = forward ? kNarrowForward : kNarrowBackward;
  const std::size_t efficiency_of_wide = forward ? kForward : kBackward;
  const T& efficiency = p[narrow ? efficiency_of_narrow : efficiency_of_wide];
  const T& share = p[forward ? kForwardBandwidth : kBackwardBandwidth];
  const T& step_overhead = p[forward ? kForwardStep : kBackwardStep];

  const double operations = call.steps * 2 * weights * std::max(call.batch, kThinBatch);
  const T compute = operations * operation_time(hardware, sustained, efficiency);

  const double bytes_read = call.steps * weights * call.element_bytes * weight_readings(call.batch);
  const T kept = p[kCached] * (hardware.l2_bytes / (weights * call.element_bytes));
  const T rate = hardware.bandwidth * sustained.bandwidth * share;
  const T memory = bytes_read / ((1.0 + kept * kept) * rate);

  const T overhead = step_overhead * (call.steps * kStepClock / hardware.clock);
  const T larger = sqrt(smooth_max<T>(compute * compute, memory * memory));
  return {compute, memory, overhead, overhead + larger};
}

template <class T>
TimeParts<T> RecurrentFamily::time(const Call& call, const Choice&, const Hardware& hardware,
                                   const AchievedFraction<T>& sustained, std::span<const T> p) {
  const T each = operation_time(hardware, sustained, p[kProduct]);
  const double input_operations = 2 * call.gates * call.hidden * call.inputs * call.batch * call.steps;
  const T input = input_operations * each;
  if (call.phase == Phase::backward_weights) {
    const T product = 2 * state_weights(call) * call.batch * call.steps * each + input;
    return {product, T(0), p[kCall], p[kCall] + product};
  }
  const TimeParts<T> all = steps(call, hardware, sustained, p);
  const T overhead = all.overhead + p[kCall];
  return {all.compute + input, all.memory, overhead, all.total + p[kCall] + input};
}

// cuDNN's choice of kernels for a step depends on the batch more than on any other size.
inline Features RecurrentFamily::features(const Call& call) {
  constexpr double kBatch = 2, kSizes = 0.5, kSteps = 0.15;
  return {group(call),
          5,
          {kBatch * std::log2(call.batch), kSizes * std::log2(call.gates * call.hidden),
           kSizes * std::log2(call.hidden), kSteps * std::log2(call.steps),
           kSizes * std::log2(1 + call.inputs / call.hidden)}};
}

}  // namespace tbdsim
