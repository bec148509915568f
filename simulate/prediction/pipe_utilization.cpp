#include "simulate/prediction/pipe_utilization.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "costmodel/hardware.h"
#include "simulate/prediction/utilization.h"

namespace tbdsim {
namespace {

// CUDA's functions in terms of instructions for special functions: expf and logf have one, a division and a
// square root one, sigmoid and tanh an exponential and a reciprocal, erff an exponential.
struct SpecialCount {
  std::string_view op;
  double each = 0;  // of an element
};
constexpr std::array<SpecialCount, 24> kSpecial = {{
    {"sigmoid", 2}, {"silu", 2},        {"tanh", 2},         {"gelu", 1},
    {"exp", 1},     {"exp_sum", 1},     {"log", 1},          {"sqrt", 1},
    {"rsqrt", 1},   {"div", 1},         {"pow", 2},          {"logistic", 1},
    {"softmax", 1}, {"log_softmax", 1}, {"softmax_loss", 1}, {"focal_loss", 3},
    {"addcdiv", 1}, {"adam", 2},        {"bert_adam", 2},    {"fused_adam", 2},
    {"lamb", 2},    {"lstm_cell", 2},   {"gru_cell", 1.2},   {"transducer_loss", 1},
}};

// Instructions of the pipe over multiply-adds in products, whose addresses and transforms it computes, too:
// what nvprof's levels in the TBD paper were fitted to (utilization.h). With it MiniGo, by the suite's later
// page 66.6 to 72.0 % on an RTX 2080 Ti, is predicted at 61 to 71 %. Elsewhere each operation is an
// instruction of two.
constexpr double kProductInstructions = 1.7;

double elements_of(const Kernel& kernel, double batch) {
  if (const auto* vector = std::get_if<VectorShape>(&kernel.shape)) return vector->elements.at(batch);
  if (const auto* matrix = std::get_if<MatrixShape>(&kernel.shape))
    return matrix->rows.at(batch) * static_cast<double>(matrix->columns);
  return 0;
}

bool is_product(const Kernel& kernel) {
  return kernel.kind == KernelKind::convolution || kernel.kind == KernelKind::gemm ||
         kernel.kind == KernelKind::recurrent;
}

}  // namespace

double special_functions(const Kernel& kernel, double batch) {
  if (const auto* r = std::get_if<RecurrentShape>(&kernel.shape)) {
    // LSTM: four gates and tanh(c); GRU: three gates; each an exponential and a reciprocal.
    const double activations = r->gates == 4 ? 5 : 3;
    return 2 * activations * r->batch.at(batch) * static_cast<double>(r->steps) *
           static_cast<double>(r->hidden);
  }
  if (const auto* a = std::get_if<AttentionShape>(&kernel.shape))
    return a->heads.at(batch) * a->queries.at(batch) * a->keys.at(batch) * (a->causal ? 0.5 : 1);
  const bool subtracts = kernel.op == "softmax_loss" && kernel.phase != Phase::forward;  // p - one_hot(label)
  if (subtracts) return 0;
  const auto* found = std::find_if(kSpecial.begin(), kSpecial.end(),
                                   [&](const SpecialCount& count) { return count.op == kernel.op; });
  return found == kSpecial.end() ? 0 : found->each * elements_of(kernel, batch);
}

// CUDA C++ Programming Guide, arithmetic instructions, "reciprocal, reciprocal square root, base-2 logarithm,
// base-2 exponential, sine and cosine": 32 up to 6.x but 16 for 6.0, and 16 from 7.0 on.
double special_lanes(double compute_capability) {
  constexpr double kVolta = 7.0;
  const bool p100 = compute_capability == 6.0;
  return compute_capability >= kVolta || p100 ? 16 : 32;
}

std::optional<PipeUse> pipe_use(const Prediction& p) {
  PipeUse seconds;  // that each pipe needs for its work at its peak
  double busy = 0;  // seconds
  const double fp32_peak = rate_of(*p.gpu, MathType::fp32).peak.si();
  const double special_peak =
      special_lanes(p.gpu->compute_capability) * p.gpu->sm_count * p.gpu->boost_clock.si();
  for (const Iteration& i : p.iterations) {
    const auto batch = static_cast<double>(i.batch);
    for (const KernelRuns& runs : i.runs) {
      const Kernel& kernel = i.step->kernels[runs.kernel];
      const KernelCost& cost = i.costs[runs.kernel];
      if (kernel.kind == KernelKind::transfer || !cost.runs()) continue;
      const double times = static_cast<double>(runs.times) * i.share;
      busy += cost.total.si() * times;
      seconds.special += special_functions(kernel, batch) / special_peak * times;
      const double fp32 = fp32_flops(kernel, cost, batch, *p.gpu).si();
      const double fma = fp32 * (is_product(kernel) ? kProductInstructions : 2) / fp32_peak;
      seconds.fma += std::min(fma, cost.total.si()) * times;
      if (!is_product(kernel) || fp32 > 0) continue;
      const double own = kernel.flops.at(batch) / rate_of(*p.gpu, cost.math).peak.si() * times;
      (has_tensor_cores(*p.gpu, cost.math) ? seconds.tensor : seconds.fp16) += own;
    }
  }
  if (busy == 0) return std::nullopt;
  const auto share = [&](double s) { return std::min(1.0, s / busy); };
  return PipeUse{share(seconds.fma), share(seconds.fp16), share(seconds.tensor), share(seconds.special)};
}

}  // namespace tbdsim
