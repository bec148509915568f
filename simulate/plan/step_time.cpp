#include "simulate/plan/step_time.h"

#include <algorithm>

#include "simulate/plan/rank_memory.h"

namespace tbdsim {
namespace {

constexpr double kUpdateBandwidth =
    0.85;  // share of the memory bandwidth of one fused pass over many tensors

// One pass of one micro-batch through a stage.
struct Pass {
  Seconds kernels;
  Seconds again;
  Waits waits;  // for collectives within blocks
  Waits busy;   // of them with those beside which kernels run
  double launches = 0;

  void add(const Pass& other, double times) {
    kernels += other.kernels * times;
    again += other.again * times;
    waits.add(other.waits, times);
    busy.add(other.busy, times);
    launches += other.launches * times;
  }
  [[nodiscard]] Seconds gpu() const { return kernels + again + waits.total(); }
};

Pass forward_of(const PieceCost& c) {
  return {c.forward, Seconds(0), c.forward_wait, c.forward_busy, c.forward_launches};
}

Pass backward_of(const PieceCost& c, Recomputation r) {
  const auto i = static_cast<std::size_t>(r);
  Pass pass{c.backward, c.again[i], c.backward_wait, c.backward_busy,
            c.backward_launches + c.again_launches[i]};
  if (r == Recomputation::full) {
    pass.waits.add(c.forward_wait, 1);
    pass.busy.add(c.forward_busy, 1);
  }
  return pass;
}

class Step {
 public:
  Step(const ParallelLayout& layout, PieceTable& table)
      : l_(layout), in_(table.inputs()), costs_(table.of(share_of(layout))) {}

  LayoutPrediction run(FlopsPerSecond peak) {
    LayoutPrediction p;
    p.layout = l_;
    const auto m = static_cast<double>(micro_batches(l_, in_.job));
    p.stages.reserve(static_cast<std::size_t>(l_.pp));
    for (std::int64_t i = 0; i < l_.pp; ++i) p.stages.push_back(stage(i));
    const PipelineTime pipeline = pipeline_time(l_.order, p.stages, micro_batches(l_, in_.job), l_.vp);
    StepParts& parts = p.parts;
    const std::int64_t pace = pipeline.busiest;
    (void)stage(pace);  // fills in what the parts are made of
    parts.compute = (forward_.kernels + backward_.kernels + accumulation_) * m;
    parts.again = backward_.again * m;
    parts.launch = idle_ * m;
    parts.within = (forward_.waits.total() + backward_.waits.total()) * m;
    parts.sends = sends_ * m;
    parts.bubble = pipeline.bubble();
    parts.replicas = gathers_ * m + sync(pace);
    p.communication = communication(parts, m);
    parts.update = update(pace);
    parts.other = in_.stack.iteration;
    p.step = parts.compute + parts.again + parts.launch + parts.within + parts.sends + parts.bubble +
             parts.replicas + parts.update + parts.other;
    const double tokens = static_cast<double>(in_.job.global_batch) * static_cast<double>(in_.job.sequence);
    p.tokens_per_second = tokens / p.step.si();
    p.mfu = model_flops_per_token(in_.shape, in_.job.sequence, in_.job.adapters.frozen()) *
            p.tokens_per_second / (peak.si() * static_cast<double>(in_.job.gpus));
    p.first = memory_of_stage(l_, 0, costs_, in_);
    p.last = memory_of_stage(l_, l_.pp - 1, costs_, in_);
    p.most = p.first.reserved < p.last.reserved ? p.last : p.first;
    return p;
  }

 private:
  [[nodiscard]] std::int64_t shard_ranks() const { return l_.shard > 0 ? l_.shard : l_.replicas(); }

  // By dimension, once stage() and sync() have filled in the members.
  [[nodiscard]] std::array<DimensionTime, kDimensionNames.size()> communication(const StepParts& parts,
                                                                                double m) const {
    const auto within = [&](Seconds Waits::*over) {
      return DimensionTime{(forward_.busy.*over + backward_.busy.*over) * m,
                           (forward_.waits.*over + backward_.waits.*over) * m};
    };
    const double sends = l_.pp > 1 ? 2 * m * static_cast<double>(l_.vp) : 0;
    return {within(&Waits::tensor), within(&Waits::context), within(&Waits::expert),
            DimensionTime{sends > 0 ? send_time() * sends : Seconds(0), parts.sends},
            DimensionTime{replicas_pass_ * m + replicas_step_, parts.replicas}};
  }

  // Times of a stage for one micro-batch; leaves its parts in the members.
  StageTime stage(std::int64_t i) {
    const StageLayers layers = layers_of_stage(l_, i, in_.shape);
    forward_ = backward_ = {};
    if (layers.dense > 0) {
      forward_.add(forward_of(costs_.dense), layers.dense);
      backward_.add(backward_of(costs_.dense, l_.recompute), layers.dense);
    }
    if (layers.expert > 0) {
      forward_.add(forward_of(costs_.expert), layers.expert);
      backward_.add(backward_of(costs_.expert, l_.recompute), layers.expert);
    }
    Seconds weights = costs_.dense.weights * layers.dense + costs_.expert.weights * layers.expert;
    if (i == 0) ends(costs_.embedding);
    if (i == l_.pp - 1) ends(costs_.head);
    const Seconds launch = in_.stack.cuda_graphs ? Seconds(0) : in_.stack.launch;
    const auto host = [&](const Pass& pass) { return launch * pass.launches; };
    Seconds forward = std::max(forward_.gpu(), host(forward_));
    Seconds backward = std::max(backward_.gpu(), host(backward_));
    idle_ = std::max(Seconds(0), forward - forward_.gpu()) + std::max(Seconds(0), backward - backward_.gpu());
    accumulation_ = accumulation(i);
    backward += accumulation_;
    gathers_ = replicas_pass_ = Seconds(0);
    if (l_.zero == 3) {
      const Seconds gather = shard_time(Collective::all_gather, layers, in_.stack.parameter_bytes,
                                        &PieceCost::parameters, &PieceCost::expert_parameters);
      const Seconds reduce = shard_time(Collective::reduce_scatter, layers, in_.stack.reduced_bytes,
                                        &PieceCost::trained, &PieceCost::trained_experts);
      replicas_pass_ = gather * (l_.reshard ? 2 : 1) + reduce;
      const double blocks = layers.dense + layers.expert;
      forward += hide(gather, forward, blocks);
      backward += hide((l_.reshard ? gather : Seconds(0)) + reduce, backward, blocks);
    }
    sends_ = Seconds(0);
    if (l_.pp > 1) {
      const Seconds one = send_time() * static_cast<double>(l_.vp == 1 ? 1 : 0);
      forward += one;
      backward += one;
      sends_ = one * 2;
    }
    return {forward, backward, weights};
  }

  void ends(const PieceCost& piece) {
    forward_.add(forward_of(piece), 1);
    backward_.add(backward_of(piece, Recomputation::none), 1);
  }

  // Time that collectives of `blocks` equal blocks add to a pass beside which they run: the first is exposed,
  // each other one as far as it takes longer than a block's pass, which it slows. Without prefetching all of
  // it is exposed.
  Seconds hide(Seconds collectives, Seconds pass, double blocks) {
    if (blocks <= 0) return Seconds(0);
    if (l_.prefetch == 0) {
      gathers_ += collectives;
      return collectives;
    }
    const Seconds slowed = std::min(collectives, pass) * kBesideCollective;
    const Seconds exposed = std::max(Seconds(0), collectives - (pass + slowed)) + collectives * (1 / blocks);
    const Seconds added = slowed + std::min(exposed, collectives);
    gathers_ += added;
    return added;
  }

  // Block by block: every block's parameters are a message of their own.
  [[nodiscard]] Seconds shard_time(Collective collective, const StageLayers& layers, double bytes,
                                   double PieceCost::*shared, double PieceCost::*experts) const {
    const CommGroup group = group_of(in_.fabric, shard_ranks(), l_.tp);
    const auto all = [&](const PieceCost& c, double count) {
      if (count <= 0) return Seconds(0);
      return collective_time(collective, group, Bytes((c.*shared + c.*experts) * bytes)) * count;
    };
    return all(costs_.dense, layers.dense) + all(costs_.expert, layers.expert) + all(costs_.embedding, 1) +
           all(costs_.head, 1);
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
    const auto m = static_cast<double>(micro_batches(l_, in_.job));
    double added = trained(i).divided(1, 1) * (m - 1) / m;
    if (l_.pp == 1 && in_.shape.tied) added += costs_.embedding.trained;
    if (l_.zero == 3) added /= static_cast<double>(shard_ranks());
    return passed(added * in_.stack.accumulation_traffic);
  }

  // Seconds in which a fused pass over many tensors moves this many bytes.
  [[nodiscard]] Seconds passed(double bytes) const {
    return Bytes(bytes) / (in_.calibration->gpu->memory_bandwidth * kUpdateBandwidth);
  }

  // All-reduces of each shard of these parameters' gradients over its copies.
  [[nodiscard]] Seconds sum_of_copies(double all) const {
    const CommGroup copies = group_of(in_.fabric, l_.replicas() / shard_ranks(), l_.tp * shard_ranks());
    const double shard = all / static_cast<double>(shard_ranks());
    return collective_time(Collective::all_reduce, copies, Bytes(shard * in_.stack.reduced_bytes));
  }

  // Exposed time of gradients and parameters between replicas, once a step.
  Seconds sync(std::int64_t i) {
    const StageParameters trained = this->trained(i);
    const double all = trained.divided(1, 1);
    replicas_step_ = Seconds(0);
    if (l_.zero == 3) {
      if (shard_ranks() == l_.replicas()) return Seconds(0);
      replicas_step_ = sum_of_copies(all);
      return beside(replicas_step_, backward_.gpu());
    }
    const CommGroup replicas = group_of(in_.fabric, l_.replicas(), l_.tp);
    const CommGroup expert_replicas =
        group_of(in_.fabric, std::max<std::int64_t>(1, l_.replicas() * l_.tp / l_.ep), l_.ep);
    const auto time = [&](Collective collective, double bytes) {
      Seconds sum = collective_time(collective, replicas, Bytes(trained.shared * bytes));
      if (trained.experts > 0)
        sum += collective_time(collective, expert_replicas, Bytes(trained.experts * bytes));
      return sum;
    };
    const Stack& stack = in_.stack;
    const bool divided = l_.zero >= 1;
    Seconds reduce = time(divided ? Collective::reduce_scatter : Collective::all_reduce, stack.reduced_bytes);
    Seconds gather = divided ? time(Collective::all_gather, stack.parameter_bytes) : Seconds(0);
    if (divided && shard_ranks() < l_.replicas()) {  // within each group of shards, sums over their copies
      const CommGroup shard = group_of(in_.fabric, shard_ranks(), l_.tp);
      reduce = collective_time(Collective::reduce_scatter, shard, Bytes(all * stack.reduced_bytes)) +
               sum_of_copies(all);
      gather = collective_time(Collective::all_gather, shard, Bytes(all * stack.parameter_bytes));
    }
    replicas_step_ = reduce + gather;
    Seconds exposed = stack.overlaps_reduction ? beside(reduce, backward_.gpu()) : reduce;
    exposed += stack.overlaps_gather ? beside(gather, forward_.gpu()) : gather;
    return exposed + sum_of_tied();
  }

  // Sum of the embedding's gradients over the first and the last stage, which each have a copy of it.
  [[nodiscard]] Seconds sum_of_tied() const {
    if (l_.pp == 1 || !in_.shape.tied || costs_.embedding.trained <= 0) return Seconds(0);
    const CommGroup ends = group_of(in_.fabric, 2, l_.tp * l_.cp * l_.dp * (l_.pp - 1));
    const Bytes gradients(costs_.embedding.trained * in_.stack.reduced_bytes);
    return collective_time(Collective::all_reduce, ends, gradients);
  }

  // Exposed of a collective in buckets beside one pass: the last bucket, what the pass does not cover, and
  // what the pass takes longer.
  static Seconds beside(Seconds collective, Seconds pass) {
    constexpr double kBuckets = 16;
    const Seconds covered = std::min(collective, pass);
    return collective - covered + covered * (1 / kBuckets) + covered * kBesideCollective;
  }

  Seconds update(std::int64_t i) {
    const auto replicas = static_cast<double>(shard_ranks());
    const double experts = std::max(1.0, replicas * static_cast<double>(l_.tp) / static_cast<double>(l_.ep));
    const bool divided = l_.zero >= 1;
    const double local = divided ? trained(i).divided(replicas, experts) : trained(i).divided(1, 1);
    return passed(local * in_.stack.update_traffic);
  }

  const ParallelLayout& l_;
  const PlanInputs& in_;
  const PieceCosts& costs_;
  Pass forward_, backward_;
  Seconds idle_, sends_, gathers_, accumulation_;
  Seconds replicas_pass_, replicas_step_;  // collectives between replicas: of a micro-batch, of a step
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
