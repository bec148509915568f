// Recurrent layers whose steps all run in one kernel, which holds the state's weights in registers and shared
// memory (cuDNN's CUDNN_RNN_ALGO_PERSIST_STATIC in half precision: ampere_lstm_tile16,
// ampere_lstm_bp_largeB). Nothing is read again from step to step but the state, sixteen sequences at a time.
//
//   step = (fixed + max(batch, 16) / 16 * (pass + hidden * unit)) * 1.4 GHz / boost clock + slower
//   slower = 2 * gates * hidden^2 * max(batch, 16) / (SMs * boost clock) * max(0, 1 / rate - 1 / 2,540)
//   time = call + steps * step + input product
//   input product (inputs > 0): 2 * gates * hidden * inputs * batch * steps / (peak * clock * product)
//
// Times in seconds; fixed, pass and unit (forward, backward), call and product: fitted; clock: sustained
// share of the peak (operations a second). rate: operations a clock and SM; the kernel was timed where a
// warp's products have 2,540 (an H100), and takes longer where they have fewer (an A100 2,048, an RTX 4090
// 512). Gradients by the weights are one product over all steps, RecurrentFamily's.
//
// PyTorch asks cuDNN for them for LSTMs in fp16 of up to 128 sequences and 1,024 units, sizes of the weights
// in whole multiples of 128, in calls of one layer and direction whose sequences are not packed
// (aten/src/ATen/native/cudnn/RNN.cpp, get_algo, use_persist_common_heuristics,
// use_persist_device_heuristics). PyTorch wants whole multiples of 8 sequences, too: others, which take
// longer, are not told apart here, so that more sequences never take less time.
#pragma once

#include <algorithm>
#include <cmath>

#include "costmodel/call.h"
#include "costmodel/families/kernel_time.h"
#include "costmodel/families/recurrent.h"

namespace tbdsim {

// True for calls of these sizes. Calls without a product of the input are benchmarks of the steps alone,
// which ask for the other kernels (DeepBench).
[[nodiscard]] inline bool fits_persistent_kernel(const RecurrentCall& call) {
  constexpr double kHalf = 2, kLstm = 4, kMost = 128, kWidest = 1'024, kMultiple = 128;
  const auto whole = [](double size) { return size > 0 && std::fmod(size, kMultiple) == 0; };
  return call.phase != Phase::backward_weights && call.element_bytes == kHalf && call.gates == kLstm &&
         call.alone && call.batch <= kMost && call.hidden <= kWidest && whole(call.hidden) &&
         whole(call.inputs);
}

struct PersistentRecurrentFamily {
  using Call = RecurrentCall;
  using Sizes = Call;
  static constexpr std::string_view name = "persistent_recurrent";
  static constexpr bool persistent = true;
  enum : std::size_t {
    kForwardStep,
    kForwardPass,
    kForwardUnit,
    kBackwardStep,
    kBackwardPass,
    kBackwardUnit,
    kProduct,
    kCall
  };
  static constexpr auto parameters = std::to_array<Parameter>({
      {"forward_step", 1e-6, 1e-8, 1e-4, "s", "each step, at 1.4 GHz boost"},
      {"forward_pass", 1e-6, 1e-8, 1e-4, "s", "each sixteen sequences of a step, the same"},
      {"forward_unit", 1.5e-9, 1e-11, 1e-6, "s", "each hidden unit of these, the same"},
      {"backward_step", 2e-6, 1e-8, 1e-4, "s", "each step backward, the same"},
      {"backward_pass", 1e-6, 1e-8, 1e-4, "s", "each sixteen sequences of it, the same"},
      {"backward_unit", 2e-9, 1e-11, 1e-6, "s", "each hidden unit of these, the same"},
      {"product", 0.8, 0.3, 1.2, "", "share of the sustained peak of products over all steps"},
      {"call", 2e-5, 1e-6, 2e-3, "s", "each call", 1},
  });

  template <class Visit>
  static void for_each_choice(const Call&, const Hardware&, Visit visit) {
    visit(Choice{.algorithm = Algorithm::recurrent});
  }
  template <class T>
  static TimeParts<T> time(const Call& call, const Choice&, const Hardware& hardware,
                           const AchievedFraction<T>& sustained, std::span<const T> p) {
    const bool forward = call.phase == Phase::forward;
    const T& pass = p[forward ? kForwardPass : kBackwardPass];
    const T& unit = p[forward ? kForwardUnit : kBackwardUnit];
    const double passes = std::max(call.batch, kThinBatch) / kThinBatch;
    const double at_clock = call.steps * kStepClock / hardware.clock;
    const T state = passes * (pass + call.hidden * unit) * at_clock + slower_products(call, hardware);
    const double operations = 2 * call.gates * call.hidden * call.inputs * call.batch * call.steps;
    const T compute = state + operations * operation_time(hardware, sustained, p[kProduct]);
    const T overhead = p[forward ? kForwardStep : kBackwardStep] * at_clock + p[kCall];
    return {compute, T(0), overhead, overhead + compute};
  }
  // Seconds of all steps that products take longer than at the rate of the GPU that was timed.
  static double slower_products(const Call& call, const Hardware& hardware) {
    constexpr double kTimed = 0.62 * 4'096;  // operations a clock and SM (hardware.h, instruction_share)
    const double clocks = hardware.sm_count * hardware.clock;  // of all SMs, a second
    const double each = std::max(0.0, clocks / hardware.peak - 1 / kTimed);
    const double weights = RecurrentFamily::state_weights(call);
    return 2 * weights * std::max(call.batch, kThinBatch) * call.steps * each / clocks;
  }
  static double workspace_bytes(const Call&, const Choice&) { return 0; }
  static double flops(const Call& call) { return RecurrentFamily::flops(call); }
  static double executed(const Sizes& call, const Choice&) { return flops(call); }
  static double bytes(const Call& call) { return operand_bytes(call); }
  static double operand_bytes(const Call& call) { return RecurrentFamily::operand_bytes(call); }
  static std::uint64_t group(const Call& call) { return RecurrentFamily::group(call); }
  static Features features(const Call& call) { return RecurrentFamily::features(call); }
};

}  // namespace tbdsim
