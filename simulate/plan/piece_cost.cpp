#include "simulate/plan/piece_cost.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "costmodel/estimate.h"
#include "hwspecs/base/error.h"

namespace tbdsim {
namespace {

// Part of the backward pass's collectives of tensor parallelism that run beside products: without sequence
// parallelism the sum of an input's gradients beside the gradient of the weight; with it also the second
// gathering of the input, but not the gathering of the output's gradient (Megatron-LM
// core/tensor_parallel/layers.py, LinearWithGradAccumulationAndAsyncCommunication).
constexpr double kBeside = 1, kBesideOfSequence = 2.0 / 3;
// Part of a collective that Userbuffers leave exposed: the first piece of four and the last. Products beside
// the others take longer where these are reductions, half of them: copy engines gather (TransformerEngine,
// use_ce).
constexpr double kOfPieces = 0.25, kReductions = 0.5;

// Host time of a collective's launch over that of a kernel of the list: one call of c10d; its module and its
// node of autograd are there with one rank too. Launch-bound runs take as long for a layer with 1, 2 and 4
// tensor-parallel ranks: 3.3, 3.4 and 3.2 ms in the `fit` rows of vtrain_single, 6.8, 7.2 and 6.2 ms in
// Megatron-Core's functional tests. Estimate between none and a third of a kernel.
constexpr double kCollectiveLaunch = 1.0 / 3;

CommGroup group_for(AcrossRanks dimension, const Share& share, const Fabric& fabric) {
  switch (dimension) {
    case AcrossRanks::tensor:
      return group_of(fabric, share.tp, 1);
    case AcrossRanks::context:
      return group_of(fabric, share.cp, share.tp);
    case AcrossRanks::expert:  // over neighbours, with tensor-parallel ranks among them
      return group_of(fabric, share.ep, share.etp);
    case AcrossRanks::expert_tensor:
      return group_of(fabric, share.etp, 1);
  }
  return {};
}

// A kernel's time, of attention with the stack's factor.
Seconds time_of(const Kernel& kernel, const PlanInputs& inputs) {
  const Seconds time = estimate(kernel, 1, *inputs.calibration).total;
  return std::holds_alternative<AttentionShape>(kernel.shape) ? time * inputs.stack.attention_factor : time;
}

// Whether a collective of NCCL that is launched before a product runs beside it. Blackwell's products are
// persistent kernels that take all SMs, and Megatron-LM no longer orders launches there
// (CUDA_DEVICE_MAX_CONNECTIONS, training/arguments.py@d98e8a64): collectives wait, but for those of
// Userbuffers, which keep SMs or copy engines of their own. Runs with 2 and 4 tensor-parallel ranks on a B200
// take longer by just these collectives; runs on an A100 (Korthikanti et al. 2022, Table 5) do not.
bool runs_beside_products(const PlanInputs& inputs) {
  constexpr double kBlackwell = 10;
  if (!inputs.stack.overlaps_weights) return false;
  return inputs.stack.overlaps_tensor || inputs.calibration->gpu->compute_capability < kBlackwell;
}

bool computed_again(const Again& as, Recomputation r, const Stack& stack) {
  switch (r) {
    case Recomputation::none:
      return false;
    case Recomputation::selective:
      return as.selected;
    case Recomputation::operators:
      return as.kept == Kept::pointwise || as.kept == Kept::half || as.kept == Kept::scores;
    case Recomputation::full:
      return !(stack.stops_early && as.tail);
  }
  return false;
}

// Collectives and launches beside kernels that recomputation repeats: all with full recomputation, those of
// experts where selective recomputation sends tokens again.
void add_repeated(PieceCost& cost, const RankWork& work) {
  constexpr auto kFull = static_cast<std::size_t>(Recomputation::full);
  constexpr auto kSelective = static_cast<std::size_t>(Recomputation::selective);
  cost.again_wait[kFull] = cost.forward_wait;
  cost.again_busy[kFull] = cost.forward_busy;
  const double kernels = static_cast<double>(work.forward.size());
  cost.again_launches[kFull].kernels += cost.forward_launches.kernels - kernels;
  cost.again_launches[kFull].experts = work.forward_experts;
  cost.again_launches[kFull].routing = work.forward_routing;
  if (!work.routes_again) return;
  cost.again_wait[kSelective].expert = cost.forward_wait.expert;
  cost.again_busy[kSelective].expert = cost.forward_busy.expert;
  cost.again_launches[kSelective].experts = work.forward_experts;
  cost.again_launches[kSelective].routing = work.forward_routing;
}

// Time of attention, beside which keys and values go round.
struct AttentionTime {
  Seconds forward, backward;
};

AttentionTime add_kernels(PieceCost& cost, const RankWork& work, const PlanInputs& inputs) {
  AttentionTime attention;
  for (std::size_t i = 0; i < work.forward.size(); ++i) {
    const Seconds time = time_of(work.forward[i], inputs);
    cost.forward += time;
    if (work.again[i].kept == Kept::attention) attention.forward += time;
    for (std::size_t r = 0; r < kRecomputationNames.size(); ++r) {
      if (!computed_again(work.again[i], static_cast<Recomputation>(r), inputs.stack)) continue;
      cost.again[r] += time;
      cost.again_launches[r].kernels += 1;
    }
  }
  for (const Kernel& kernel : work.backward) {
    const Seconds time = time_of(kernel, inputs);
    cost.backward += time;
    if (kernel.phase == Phase::backward_weights) cost.weights += time;
    if (std::holds_alternative<AttentionShape>(kernel.shape)) attention.backward += time;
  }
  return attention;
}

// Collectives of a pass, all of them and what kernels wait for.
void add_messages(PieceCost& cost, const RankWork& work, const Share& share, const PlanInputs& inputs) {
  const auto time = [&](const std::vector<Message>& messages, AcrossRanks dimension,
                        bool only_alone = false) {
    Seconds sum;
    for (const Message& m : messages) {
      if (m.over == dimension && (m.alone || !only_alone))
        sum += collective_time(m.collective, group_for(dimension, share, inputs.fabric), m.bytes);
    }
    return sum;
  };
  const auto busy = [&](const std::vector<Message>& messages) {
    return Waits{time(messages, AcrossRanks::tensor), time(messages, AcrossRanks::context),
                 time(messages, AcrossRanks::expert) + time(messages, AcrossRanks::expert_tensor)};
  };
  cost.forward_wait = cost.forward_busy = busy(work.forward_messages);
  cost.backward_wait = cost.backward_busy = busy(work.backward_messages);
  const double exposed =
      inputs.stack.overlaps_tensor ? kOfPieces + (1 - kOfPieces) * kReductions * kBesideCollective : 1;
  const Seconds forward_alone = time(work.forward_messages, AcrossRanks::tensor, true);
  const Seconds backward_alone = time(work.backward_messages, AcrossRanks::tensor, true);
  cost.forward_wait.tensor = (cost.forward_busy.tensor - forward_alone) * exposed + forward_alone;
  const Seconds tensor = cost.backward_busy.tensor - backward_alone;
  Seconds beside = tensor * (share.sequence_parallel ? kBesideOfSequence : kBeside);
  beside = runs_beside_products(inputs) ? std::min(beside, cost.weights) : Seconds(0);
  cost.backward_wait.tensor = (tensor - beside) * exposed + beside * kBesideCollective + backward_alone;
  if (!inputs.stack.overlaps_experts) return;
  cost.forward_wait.expert = exposed_beside(cost.forward_busy.expert, cost.forward);
  cost.backward_wait.expert = exposed_beside(cost.backward_busy.expert, cost.backward);
}

// Keys and values go round beside attention: as often as there are other ranks; backward with their
// gradients.
void add_ring(PieceCost& cost, const RankWork& work, const Share& share, const AttentionTime& attention,
              const PlanInputs& inputs) {
  if (work.ring <= Bytes(0)) return;
  const CommGroup ring = group_for(AcrossRanks::context, share, inputs.fabric);
  const Bytes piece = work.ring * (1 / static_cast<double>(share.cp));
  const Seconds once = collective_time(Collective::send, ring, piece) * static_cast<double>(share.cp - 1);
  cost.forward_busy.context += once;
  cost.backward_busy.context += once * 2;
  cost.forward_wait.context += std::max(Seconds(0), once - attention.forward);
  cost.backward_wait.context += std::max(Seconds(0), once * 2 - attention.backward);
}

void add_launches(PieceCost& cost, const RankWork& work) {
  const auto launches = [](const std::vector<Kernel>& kernels, const std::vector<Message>& messages) {
    return static_cast<double>(kernels.size()) + kCollectiveLaunch * static_cast<double>(messages.size());
  };
  cost.forward_launches = {.kernels = launches(work.forward, work.forward_messages),
                           .experts = work.forward_experts,
                           .routing = work.forward_routing};
  cost.backward_launches = {.kernels = launches(work.backward, work.backward_messages),
                            .experts = work.backward_experts,
                            .routing = work.backward_routing};
}

}  // namespace

PieceCost cost_of(const RankWork& work, const Share& share, const PlanInputs& inputs) {
  PieceCost cost;
  const AttentionTime attention = add_kernels(cost, work, inputs);
  add_messages(cost, work, share, inputs);
  add_ring(cost, work, share, attention, inputs);
  add_launches(cost, work);
  add_repeated(cost, work);
  cost.kept = work.kept;
  cost.largest = work.largest;
  cost.holes = work.holes;
  cost.after = work.after;
  cost.parameters = work.parameters + work.adapter_parameters;
  cost.expert_parameters = work.expert_parameters + work.expert_adapter_parameters;
  const bool frozen = inputs.job.adapters.frozen();
  cost.trained = frozen ? work.adapter_parameters : cost.parameters;
  cost.trained_experts = frozen ? work.expert_adapter_parameters : cost.expert_parameters;
  return cost;
}

PieceCosts costs_of(const Share& share, const PlanInputs& inputs) {
  const DecoderShape& shape = inputs.shape;
  const Job& job = inputs.job;
  const auto block = [&](bool experts) {
    return cost_of(block_work(shape, share, job, experts, inputs.stack, inputs.precision), share, inputs);
  };
  PieceCosts costs;
  if (!shape.mixture() || shape.dense_layers > 0) costs.dense = block(false);
  if (shape.mixture()) costs.expert = block(true);
  costs.embedding = cost_of(embedding_work(shape, share, job, inputs.stack), share, inputs);
  costs.head = cost_of(head_work(shape, share, job, inputs.stack, inputs.precision), share, inputs);
  return costs;
}

const PieceCosts& PieceTable::of(const Share& share) {
  const auto found = costs_.find(share);
  if (found != costs_.end()) return found->second;
  try {
    PieceCosts costs = inputs_.pieces ? inputs_.pieces(share) : costs_of(share, inputs_);
    return costs_.emplace(share, std::move(costs)).first->second;
  } catch (const std::overflow_error&) {
    throw UsageError(
        fmt::format("{} sequences of {} tokens in one pass of {} are beyond 64 bits; expected fewer",
                    share.micro_batch, inputs_.job.sequence, inputs_.shape.name));
  }
}

}  // namespace tbdsim
