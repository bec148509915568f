// Seconds and bytes of one micro-batch through a block, the embedding or the logits on one rank: the
// project's kernels and collectives, summed once for each way to share a block. A layout's step is a closed
// form of them.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <utility>

#include "costmodel/calibration.h"
#include "simulate/plan/fabric.h"
#include "simulate/plan/rank_work.h"

namespace tbdsim {

// How much longer kernels take while a collective runs beside them, which holds SMs and memory bandwidth:
// Calculon's 0.15 for NVLink (Isaev et al. 2023, networks of its system files).
inline constexpr double kBesideCollective = 0.15;

// Time that a collective adds to the pass that it runs beside: the part that the pass does not cover, and by
// what the pass takes longer.
[[nodiscard]] inline Seconds exposed_beside(Seconds collective, Seconds pass) {
  const Seconds covered = std::min(collective, pass);
  return collective - covered + covered * kBesideCollective;
}

// Seconds by the ranks among which messages go.
struct Waits {
  Seconds tensor, context, expert;

  [[nodiscard]] Seconds total() const { return tensor + context + expert; }
  void add(const Waits& other, double times) {
    tensor += other.tensor * times;
    context += other.context * times;
    expert += other.expert * times;
  }
};

// Launches of a pass.
struct Launches {
  double kernels = 0;  // and collectives
  double experts = 0;  // of single experts' products and biases, beyond one for all
  double routing = 0;  // of operators of a router and dispatcher, beyond the kernels

  void add(const Launches& other, double times) {
    kernels += other.kernels * times;
    experts += other.experts * times;
    routing += other.routing * times;
  }
};

struct PieceCost {
  // GPU time of kernels, and of collectives that kernels wait for, in seconds.
  Seconds forward;
  Seconds backward;                // without what is computed again
  Seconds weights;                 // of it: gradients of weights
  std::array<Seconds, 4> again{};  // by Recomputation
  std::array<Waits, 4> again_wait{}, again_busy{};
  Waits forward_wait;
  Waits backward_wait;
  Waits forward_busy;  // of all collectives, also those beside which kernels run
  Waits backward_busy;
  Launches forward_launches, backward_launches;
  std::array<Launches, 4> again_launches{};

  std::array<Bytes, 4> kept{};
  Bytes largest;
  Bytes holes;
  Bytes after;
  double parameters = 0;
  double expert_parameters = 0;
  double trained = 0;  // of `parameters`
  double trained_experts = 0;
};

struct PieceCosts {
  PieceCost dense;   // a block without experts
  PieceCost expert;  // a block with experts; empty where the network has none
  PieceCost embedding;
  PieceCost head;
};

// Everything that costs depend on beside the layout.
struct PlanInputs {
  DecoderShape shape;
  Job job;
  Stack stack;
  WorkPrecision precision;
  const Calibration* calibration = nullptr;
  Fabric fabric;
  // The costs of the pieces; empty: of the decoder's sizes.
  std::function<PieceCosts(const Share&)> pieces;
  double flops_per_token = 0;  // that MFU counts; 0: of the decoder's sizes
};

[[nodiscard]] PieceCost cost_of(const RankWork& work, const Share& share, const PlanInputs& inputs);

// Throws std::overflow_error for sizes beyond 64 bits.
[[nodiscard]] PieceCosts costs_of(const Share& share, const PlanInputs& inputs);

// The costs of each share, computed when first asked for. For one thread.
class PieceTable {
 public:
  explicit PieceTable(const PlanInputs& inputs) : inputs_(inputs) {}
  // Throws UsageError for sizes beyond 64 bits.
  [[nodiscard]] const PieceCosts& of(const Share& share);
  [[nodiscard]] const PlanInputs& inputs() const { return inputs_; }

 private:
  const PlanInputs& inputs_;
  std::map<Share, PieceCosts> costs_;
};

}  // namespace tbdsim
