#include "simulate/plan/step_time.h"

#include <algorithm>

#include "simulate/communication/sync_timeline.h"
#include "simulate/plan/replica_exchange.h"

namespace tbdsim {
namespace {

// One pass of one micro-batch through a stage.
struct Pass {
  Seconds kernels;
  Seconds again;
  Waits waits;        // for collectives within blocks
  Waits busy;         // of them with those beside which kernels run
  Launches modules;   // by modules: of the forward pass, and of what is computed again
  Launches autograd;  // by autograd: of gradients

  void add(const Pass& other, double times) {
    kernels += other.kernels * times;
    again += other.again * times;
    waits.add(other.waits, times);
    busy.add(other.busy, times);
    modules.add(other.modules, times);
    autograd.add(other.autograd, times);
  }
  [[nodiscard]] Seconds gpu() const { return kernels + again + waits.total(); }
};

Pass forward_of(const PieceCost& c) {
  return {c.forward, Seconds(0), c.forward_wait, c.forward_busy, c.forward_launches, {}};
}

Pass backward_of(const PieceCost& c, Recomputation r) {
  const auto i = static_cast<std::size_t>(r);
  Pass pass{c.backward,      c.again[i],          c.backward_wait,
            c.backward_busy, c.again_launches[i], c.backward_launches};
  pass.waits.add(c.again_wait[i], 1);
  pass.busy.add(c.again_busy[i], 1);
  return pass;
}

// Seconds of the host for launches that take it `each`, but operators of routers; those in CUDA graphs take
// none.
Seconds host_time(const Launches& l, Seconds each, const Stack& stack) {
  switch (stack.graphs) {
    case CudaGraphs::none:
      return each * (l.kernels + l.experts) + stack.operator_launch * l.routing;
    case CudaGraphs::routers:
      return each * (l.kernels + l.experts);
    case CudaGraphs::but_experts:
      return each * l.experts;
    case CudaGraphs::all:
      break;
  }
  return Seconds(0);
}

// The work of a stage for one micro-batch.
struct StageWork {
  Pass forward, backward;
  Seconds idle_forward, idle_backward;  // that the GPU waits for the host
  Seconds accumulation;                 // of gradients, on the mean of all micro-batches
  Seconds sends;                        // exposed
  Seconds shards_busy;                  // collectives of shards
  Seconds shards;                       // by which they make the passes longer
  StageTime time;                       // all of it, as the pipeline sees it
};

class Step {
 public:
  Step(const ParallelLayout& layout, PieceTable& table)
      : l_(layout),
        in_(table.inputs()),
        costs_(table.of(share_of(layout))),
        m_(static_cast<double>(micro_batches(layout, in_.job))) {}

  [[nodiscard]] LayoutPrediction run(FlopsPerSecond peak) const {
    LayoutPrediction p;
    p.layout = l_;
    p.stages.reserve(static_cast<std::size_t>(l_.pp));
    for (std::int64_t i = 0; i < l_.pp; ++i) p.stages.push_back(stage(i).time);
    const PipelineTime pipeline = pipeline_time(l_.order, p.stages, micro_batches(l_, in_.job), l_.vp);
    const StageWork pace = stage(pipeline.busiest);
    const ExchangeTime replicas =
        exchange_of_step(l_, pipeline.busiest, costs_, in_, pace.forward.gpu() + pace.idle_forward,
                         pace.backward.gpu() + pace.idle_backward);
    StepParts& parts = p.parts;
    parts.compute = (pace.forward.kernels + pace.backward.kernels + pace.accumulation) * m_;
    parts.again = pace.backward.again * m_;
    parts.launch = (pace.idle_forward + pace.idle_backward) * m_;
    parts.within = (pace.forward.waits.total() + pace.backward.waits.total()) * m_;
    parts.sends = pace.sends * m_;
    parts.bubble = pipeline.bubble();
    parts.replicas = pace.shards * m_ + replicas.exposed;
    parts.update = update(pipeline.busiest);
    parts.slowest = (parts.compute + parts.again + parts.launch + parts.within + parts.bubble) *
                    (kRankSpread * expected_largest(l_.ranks()));
    parts.other = in_.stack.iteration;
    p.communication = communication(parts, pace, replicas);
    p.step = parts.compute + parts.again + parts.launch + parts.within + parts.sends + parts.bubble +
             parts.replicas + parts.update + parts.slowest + parts.other;
    const double tokens = static_cast<double>(in_.job.global_batch) * static_cast<double>(in_.job.sequence);
    p.tokens_per_second = tokens / p.step.si();
    const double flops = in_.flops_per_token > 0
                             ? in_.flops_per_token
                             : model_flops_per_token(in_.shape, in_.job.sequence, in_.job.adapters.frozen());
    p.mfu = flops * p.tokens_per_second / (peak.si() * static_cast<double>(in_.job.gpus));
    p.first = memory_of_stage(l_, 0, costs_, in_);
    p.last = memory_of_stage(l_, l_.pp - 1, costs_, in_);
    p.most = p.first.reserved < p.last.reserved ? p.last : p.first;
    return p;
  }

 private:
  // Collectives by dimension, of all micro-batches.
  [[nodiscard]] std::array<DimensionTime, kDimensionNames.size()> communication(
      const StepParts& parts, const StageWork& pace, const ExchangeTime& replicas) const {
    const auto within = [&](Seconds Waits::*over) {
      return DimensionTime{(pace.forward.busy.*over + pace.backward.busy.*over) * m_,
                           (pace.forward.waits.*over + pace.backward.waits.*over) * m_};
    };
    const double sends = l_.pp > 1 ? 2 * m_ * static_cast<double>(l_.vp) : 0;
    return {within(&Waits::tensor), within(&Waits::context), within(&Waits::expert),
            DimensionTime{sends > 0 ? send_time() * sends : Seconds(0), parts.sends},
            DimensionTime{pace.shards_busy * m_ + replicas.busy, parts.replicas}};
  }

  [[nodiscard]] StageWork stage(std::int64_t i) const {
    const StageLayers layers = layers_of_stage(l_, i, in_.shape);
    StageWork work;
    const auto add = [&](const PieceCost& piece, Recomputation recompute, double times) {
      if (times <= 0) return;
      work.forward.add(forward_of(piece), times);
      work.backward.add(backward_of(piece, recompute), times);
    };
    const StageLayers kept = kept_layers(l_, layers);
    add(costs_.dense, l_.recompute, layers.dense - kept.dense);
    add(costs_.expert, l_.recompute, layers.expert - kept.expert);
    add(costs_.dense, Recomputation::none, kept.dense);
    add(costs_.expert, Recomputation::none, kept.expert);
    if (i == 0) add(costs_.embedding, Recomputation::none, 1);
    if (i == l_.pp - 1) add(costs_.head, Recomputation::none, 1);

    const auto idle = [&](const Pass& pass) {
      const Seconds host = host_time(pass.modules, in_.stack.launch, in_.stack) +
                           host_time(pass.autograd, in_.stack.operator_launch, in_.stack);
      return std::max(Seconds(0), host - pass.gpu());
    };
    work.idle_forward = idle(work.forward);
    work.idle_backward = idle(work.backward);
    work.accumulation = accumulation(i);
    Seconds forward = work.forward.gpu() + work.idle_forward;
    Seconds backward = work.backward.gpu() + work.idle_backward + work.accumulation;
    if (l_.zero == 3) {
      const ShardTime shards = exchange_of_shards(l_, layers, costs_, in_);
      const Seconds again = l_.reshard ? shards.gather : Seconds(0);
      const double one = 1 / std::max(1.0, layers.dense + layers.expert);
      const Seconds first = std::max(shards.root_gather, shards.gather * one);
      const Seconds last = std::max(shards.root_reduce, (again + shards.reduce) * one);
      const Seconds longer_forward = added_by_shards(l_, shards.gather, forward, first);
      const Seconds longer_backward = added_by_shards(l_, again + shards.reduce, backward, last);
      work.shards_busy = shards.gather + again + shards.reduce;
      work.shards = longer_forward + longer_backward;
      forward += longer_forward;
      backward += longer_backward;
    }
    if (l_.pp > 1 && l_.vp == 1) {  // interleaved sends run beside other chunks
      const Seconds send = send_time();
      work.sends = send * 2;
      forward += send;
      backward += send;
    }
    const Seconds weights = costs_.dense.weights * layers.dense + costs_.expert.weights * layers.expert;
    work.time = {forward, backward, weights};
    return work;
  }

  [[nodiscard]] Seconds send_time() const {
    const auto tokens = static_cast<double>(l_.micro_batch * in_.job.sequence / l_.cp);
    const double parts = l_.sequence_parallel ? static_cast<double>(l_.tp) : 1;
    const Bytes message(2 * tokens * static_cast<double>(in_.shape.hidden) / parts);
    const CommGroup neighbours = group_of(in_.fabric, 2, l_.tp * l_.cp * l_.dp);
    return collective_time(Collective::send, neighbours, message);
  }

  [[nodiscard]] StageParameters trained(std::int64_t i) const {
    return trained_of_stage(l_, i, costs_, in_.shape);
  }

  // Seconds in which a stage adds the gradients of a micro-batch to those before, as a mean over all
  // micro-batches: the first is added to nothing. A matrix that embedding and logits share has two gradients
  // on one stage.
  [[nodiscard]] Seconds accumulation(std::int64_t i) const {
    const StageParameters of_stage = trained(i);
    double added = (l_.zero == 3 ? of_stage.of_shard(l_) : of_stage.all()) * (m_ - 1) / m_;
    if (l_.pp == 1 && in_.shape.tied)
      added += costs_.embedding.trained / static_cast<double>(l_.zero == 3 ? l_.shard_ranks() : 1);
    return passed(added * in_.stack.accumulation_traffic);
  }

  // Seconds in which a fused pass over many tensors moves this many bytes.
  [[nodiscard]] Seconds passed(double bytes) const {
    return Bytes(bytes) / (in_.calibration->gpu->memory_bandwidth * kUpdateBandwidth);
  }

  [[nodiscard]] Seconds update(std::int64_t i) const {
    const double local = l_.zero >= 1 ? trained(i).of_shard(l_) : trained(i).all();
    return passed(local * in_.stack.update_traffic) + casts(i);
  }

  // Seconds in which the weights are cast for products in 8 or 4 bits and transposed, once a step: 16 bits
  // are read, 8 or fewer written twice. Frozen ones are cast before.
  [[nodiscard]] Seconds casts(std::int64_t i) const {
    constexpr double kBytes = 2 + 2 * 1;
    const MathType math = in_.precision.math;
    return math == MathType::fp8 || math == MathType::fp4 ? passed(trained(i).all() * kBytes) : Seconds(0);
  }

  const ParallelLayout& l_;
  const PlanInputs& in_;
  const PieceCosts& costs_;
  double m_;  // micro-batches
};

}  // namespace

std::vector<RankMemory> memory_by_stage(const ParallelLayout& layout, PieceTable& table) {
  const PieceCosts& costs = table.of(share_of(layout));
  std::vector<RankMemory> all;
  all.reserve(static_cast<std::size_t>(layout.pp));
  for (std::int64_t i = 0; i < layout.pp; ++i)
    all.push_back(memory_of_stage(layout, i, costs, table.inputs()));
  return all;
}

LayoutPrediction predict_layout(const ParallelLayout& layout, PieceTable& table, FlopsPerSecond peak) {
  return Step(layout, table).run(peak);
}

}  // namespace tbdsim
