#include "simulate/plan/replica_exchange.h"

#include <algorithm>

namespace tbdsim {
namespace {

// Time that a collective in buckets adds to a pass: exposed_beside(), and the part of it that is ready last.
Seconds exposed_of_buckets(Seconds collective, Seconds pass, double last) {
  return exposed_beside(collective, pass) + std::min(collective, pass) * last;
}

// The part of a stage's gradients that no pass is left to run beside: those of the embedding, which are ready
// last and whose parameters are needed first, or a bucket.
double last_part(const ParallelLayout& l, std::int64_t stage, double all, const PieceCosts& costs,
                 const PlanInputs& in) {
  if (all <= 0) return 0;
  const double bucket =
      std::max(in.stack.bucket_numbers, in.stack.bucket_of_replica * static_cast<double>(l.replicas()));
  return std::min(1.0, std::max(bucket, stage == 0 ? costs.embedding.trained : 0) / all);
}

// Micro-batches whose passes run beside the exchange of a step. Without interleaving gradients are whole in
// the last one. With chunks a stage takes them in turns of `pp` micro-batches, and those of a chunk are
// reduced while the others take their last turn, its parameters gathered while the others take their first
// (Megatron-LM@d98e8a64, core/pipeline_parallel/schedules.py, grad_sync_func and param_sync_func).
double passes_beside(const ParallelLayout& l, const Job& job) {
  return l.vp == 1 ? 1 : static_cast<double>(std::min(l.pp, micro_batches(l, job)));
}

// All-reduces of each shard of `trained` parameters' gradients over its copies.
Seconds sum_of_copies(const ParallelLayout& l, double trained, const PlanInputs& in) {
  const std::int64_t ranks = l.shard_ranks();
  const CommGroup copies = group_of(in.fabric, l.replicas() / ranks, l.tp * ranks);
  return collective_time(Collective::all_reduce, copies,
                         Bytes(trained / static_cast<double>(ranks) * in.stack.reduced_bytes));
}

// Sum of the embedding's gradients over the first and the last stage, which each have a copy of it.
Seconds sum_of_tied(const ParallelLayout& l, const PieceCosts& costs, const PlanInputs& in) {
  if (l.pp == 1 || !in.shape.tied || costs.embedding.trained <= 0) return Seconds(0);
  const CommGroup ends = group_of(in.fabric, 2, l.tp * l.cp * l.dp * (l.pp - 1));
  const Bytes gradients(costs.embedding.trained * in.stack.reduced_bytes);
  return collective_time(Collective::all_reduce, ends, gradients);
}

// Time to add up gradients over replicas, and to gather parameters of which each has updated a part.
struct ReplicaCollectives {
  Seconds reduce, gather;
};

ReplicaCollectives of_all_replicas(const ParallelLayout& l, const StageParameters& trained,
                                   const PlanInputs& in) {
  const CommGroup replicas = group_of(in.fabric, l.replicas(), l.tp);
  // Experts are divided over fewer replicas: those that hold the same experts.
  const CommGroup of_experts = group_of(in.fabric, l.expert_replicas(l.replicas()), l.ep * l.etp);
  const auto time = [&](Collective collective, double bytes) {
    Seconds sum = collective_time(collective, replicas, Bytes(trained.shared * bytes));
    if (trained.experts > 0) sum += collective_time(collective, of_experts, Bytes(trained.experts * bytes));
    return sum;
  };
  if (l.zero == 0) return {time(Collective::all_reduce, in.stack.reduced_bytes), Seconds(0)};
  const bool whole = l.zero == 1 && in.stack.reduces_all;
  return {time(whole ? Collective::all_reduce : Collective::reduce_scatter, in.stack.reduced_bytes),
          time(Collective::all_gather, in.stack.parameter_bytes)};
}

// Within each group of shards, with sums over their copies.
ReplicaCollectives of_groups(const ParallelLayout& l, double trained, const PlanInputs& in) {
  const CommGroup shard = group_of(in.fabric, l.shard_ranks(), l.tp);
  return {collective_time(Collective::reduce_scatter, shard, Bytes(trained * in.stack.reduced_bytes)) +
              sum_of_copies(l, trained, in),
          collective_time(Collective::all_gather, shard, Bytes(trained * in.stack.parameter_bytes))};
}

}  // namespace

ExchangeTime exchange_of_step(const ParallelLayout& l, std::int64_t stage, const PieceCosts& costs,
                              const PlanInputs& in, Seconds forward, Seconds backward) {
  const StageParameters trained = trained_of_stage(l, stage, costs, in.shape);
  const double all = trained.all();
  const bool in_groups = l.shard_ranks() < l.replicas();
  const double last = last_part(l, stage, all, costs, in);
  if (l.zero == 3) {
    if (!in_groups) return {};
    const Seconds sum = sum_of_copies(l, all, in);
    return {sum, exposed_of_buckets(sum, backward, last)};
  }
  const ReplicaCollectives c =
      l.zero >= 1 && in_groups ? of_groups(l, all, in) : of_all_replicas(l, trained, in);
  const Seconds tied = sum_of_tied(l, costs, in);
  const double passes = passes_beside(l, in.job);
  const Seconds reduce =
      in.stack.overlaps_reduction ? exposed_of_buckets(c.reduce, backward * passes, last) : c.reduce;
  const Seconds gather =
      in.stack.overlaps_gather ? exposed_of_buckets(c.gather, forward * passes, last) : c.gather;
  return {c.reduce + c.gather + tied, reduce + gather + tied};
}

ShardTime exchange_of_shards(const ParallelLayout& l, const StageLayers& layers, const PieceCosts& costs,
                             const PlanInputs& in) {
  const CommGroup group = group_of(in.fabric, l.shard_ranks(), l.tp);
  const CommGroup of_experts = group_of(in.fabric, l.expert_replicas(l.shard_ranks()), l.ep * l.etp);
  const auto sum_of = [&](Collective collective, double shared, double experts, double count, double bytes) {
    if (count <= 0) return Seconds(0);
    Seconds sum = collective_time(collective, group, Bytes(shared * bytes));
    if (experts > 0) sum += collective_time(collective, of_experts, Bytes(experts * bytes));
    return sum * count;
  };
  const auto gather = [&](const PieceCost& c, double count) {
    return sum_of(Collective::all_gather, c.parameters, c.expert_parameters, count, in.stack.parameter_bytes);
  };
  const auto reduce = [&](const PieceCost& c, double count) {
    return sum_of(Collective::reduce_scatter, c.trained, c.trained_experts, count, in.stack.reduced_bytes);
  };
  ShardTime time;
  time.root_gather = gather(costs.embedding, 1) + gather(costs.head, 1);
  time.root_reduce = reduce(costs.embedding, 1) + reduce(costs.head, 1);
  time.gather = gather(costs.dense, layers.dense) + gather(costs.expert, layers.expert) + time.root_gather;
  time.reduce = reduce(costs.dense, layers.dense) + reduce(costs.expert, layers.expert) + time.root_reduce;
  return time;
}

Seconds added_by_shards(const ParallelLayout& l, Seconds collectives, Seconds pass, Seconds alone) {
  if (l.prefetch == 0) return collectives;
  const Seconds slowed = std::min(collectives, pass) * kBesideCollective;
  const Seconds exposed = std::max(Seconds(0), collectives - (pass + slowed)) + alone;
  return slowed + std::min(exposed, collectives);
}

}  // namespace tbdsim
