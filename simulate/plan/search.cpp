#include "simulate/plan/search.h"

#include <algorithm>

namespace tbdsim {
namespace {

std::vector<std::int64_t> divisors(std::int64_t number, std::int64_t most) {
  std::vector<std::int64_t> all;
  for (std::int64_t d = 1; d <= std::min(number, most); ++d) {
    if (number % d == 0) all.push_back(d);
  }
  return all;
}

std::vector<std::int64_t> powers(std::int64_t most) {
  std::vector<std::int64_t> all;
  for (std::int64_t p = 1; p <= most; p *= 2) all.push_back(p);
  return all;
}

class Enumeration {
 public:
  Enumeration(const DecoderShape& shape, const Job& job, std::int64_t domain, const SearchSpace& space)
      : shape_(shape), job_(job), domain_(domain), space_(space) {
    most_tp_ = space.most_tp > 0 ? space.most_tp : std::min(domain, shape.heads);
    contexts_ = powers(std::min(space.most_cp, std::max<std::int64_t>(1, job.sequence / 4096)));
  }

  std::vector<ParallelLayout> run() {
    for (const std::int64_t tp : divisors(shape_.heads, most_tp_)) {
      uneven_ = !has_even_pipeline(tp);
      for (std::int64_t pp = 1; pp <= std::min({shape_.layers, job_.gpus / tp, space_.most_stages}); ++pp) {
        for (const std::int64_t cp : contexts_) {
          if (!has_replicas(tp * pp * cp)) continue;
          layout_ = {};
          layout_.tp = tp;
          layout_.pp = pp;
          layout_.cp = cp;
          layout_.dp = job_.gpus / (tp * pp * cp);
          layout_.sequence_parallel = tp > 1;
          layout_.uneven = uneven_ && pp > 1;
          of_grid();
          if (cp == 1) continue;
          layout_.context = ContextExchange::all_to_all;
          of_grid();
        }
      }
    }
    return std::move(all_);
  }

 private:
  // Whether replicas of so many ranks divide the GPUs, and their number the batch.
  [[nodiscard]] bool has_replicas(std::int64_t ranks) const {
    return job_.gpus % ranks == 0 && job_.global_batch % (job_.gpus / ranks) == 0;
  }

  // Whether some pipeline of several stages divides GPUs, batch and layers, embedding and logits counted as
  // layers or not.
  [[nodiscard]] bool has_even_pipeline(std::int64_t tp) const {
    for (std::int64_t pp = 2; pp <= std::min({shape_.layers, job_.gpus / tp, space_.most_stages}); ++pp) {
      const bool even = shape_.layers % pp == 0 || (shape_.layers + 2) % pp == 0;
      const auto fits = [&](std::int64_t cp) { return has_replicas(tp * pp * cp); };
      if (even && std::any_of(contexts_.begin(), contexts_.end(), fits)) return true;
    }
    return false;
  }

  void of_grid() {
    const std::int64_t experts = shape_.mixture() ? shape_.experts : 1;
    const std::int64_t chunks = layout_.pp > 1 ? space_.most_chunks : 1;
    for (const std::int64_t ep : divisors(experts, experts)) {
      for (std::int64_t vp = 1; vp <= chunks; ++vp) {
        for (const std::int64_t micro_batch :
             divisors(job_.global_batch / layout_.dp, space_.most_micro_batch)) {
          layout_.ep = ep;
          layout_.vp = vp;
          layout_.micro_batch = micro_batch;
          layout_.zero = 1;
          if (!is_legal(layout_, shape_, job_)) continue;
          of_memory();
        }
      }
    }
  }

  void of_memory() {
    for (const int zero : {0, 1, 2, 3}) {
      if (space_.zero >= 0 && zero != space_.zero) continue;
      const bool divides_parameters = zero == 3 && layout_.pp == 1 && layout_.replicas() > 1;
      if (space_.zero < 0 && zero != space_.least_zero && !divides_parameters) continue;
      layout_.zero = zero;
      layout_.shard = 0;
      of_recomputation();
      // Shards within a domain, copies beyond it.
      const std::int64_t near = domain_ / layout_.tp;
      if (zero != 3 || near <= 1 || near >= layout_.replicas() || layout_.replicas() % near != 0) continue;
      layout_.shard = near;
      of_recomputation();
    }
    layout_.shard = 0;
  }

  void of_recomputation() {
    for (const Recomputation r :
         {Recomputation::none, Recomputation::selective, Recomputation::operators, Recomputation::full}) {
      if (r == Recomputation::selective && !space_.selective) continue;
      if (r == Recomputation::operators && !space_.operators) continue;
      if (r == Recomputation::full && !space_.full) continue;
      layout_.recompute = r;
      all_.push_back(layout_);
    }
  }

  const DecoderShape& shape_;
  const Job& job_;
  std::int64_t domain_;
  const SearchSpace& space_;
  std::int64_t most_tp_ = 1;
  std::vector<std::int64_t> contexts_;  // numbers of context-parallel ranks
  bool uneven_ = false;                 // chunks of layers may differ
  ParallelLayout layout_;
  std::vector<ParallelLayout> all_;
};

bool faster(const LayoutPrediction& a, const LayoutPrediction& b) {
  if (a.step != b.step) return a.step < b.step;
  return a.most.reserved < b.most.reserved;
}

// From predictions in order of their step, those that need less memory than every faster one.
std::vector<LayoutPrediction> pareto_of(const std::vector<LayoutPrediction>& sorted) {
  std::vector<LayoutPrediction> front;
  for (const LayoutPrediction& p : sorted) {
    if (front.empty() || p.most.reserved < front.back().most.reserved) front.push_back(p);
  }
  return front;
}

}  // namespace

std::vector<ParallelLayout> legal_layouts(const DecoderShape& shape, const Job& job, std::int64_t domain,
                                          const SearchSpace& space) {
  return Enumeration(shape, job, domain, space).run();
}

Plan best_layouts(const std::vector<ParallelLayout>& layouts, const PlanInputs& inputs, FlopsPerSecond peak,
                  Bytes usable, std::size_t count) {
  PieceTable table(inputs);
  Plan plan;
  plan.searched = layouts.size();
  std::vector<LayoutPrediction> fitting;
  for (const ParallelLayout& layout : layouts) {
    LayoutPrediction p = predict_layout(layout, table, peak);
    if (p.most.device <= usable) {
      fitting.push_back(std::move(p));
    } else if (plan.smallest.empty() || p.most.device < plan.smallest[0].most.device) {
      plan.smallest.assign(1, std::move(p));
    }
  }
  plan.fitting = fitting.size();
  std::stable_sort(fitting.begin(), fitting.end(), faster);
  plan.pareto = pareto_of(fitting);
  fitting.resize(std::min(count, fitting.size()));
  plan.best = std::move(fitting);
  if (!plan.best.empty()) plan.smallest.clear();
  return plan;
}

}  // namespace tbdsim
