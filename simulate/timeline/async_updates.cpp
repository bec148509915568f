#include "simulate/timeline/async_updates.h"

#include <algorithm>

namespace tbdsim {

UpdateWorkers::UpdateWorkers(const TrainingStep& step, std::span<const KernelCost> costs,
                             const LaunchModel& execution, std::span<KernelSpan> spans)
    : step_(step), costs_(costs), execution_(execution), spans_(spans) {
  if (execution.workers < 2) return;
  for (std::vector<Interval>& taken : taken_) taken.reserve(step.updates.size());
}

void UpdateWorkers::segment(std::size_t k) {
  if (worker_ == 0 && segment_ < k && until_ <= spans_[segment_].start.si()) segment_ = k;  // as they stand
  for (; segment_ < k; ++segment_) {
    KernelSpan& span = spans_[segment_];
    if (span.beside) continue;
    span.worker = static_cast<int>(worker_);
    if (span.start.si() < until_ && step_.kernels[segment_].kind != KernelKind::transfer)
      beside_ += beside(span);
  }
}

double UpdateWorkers::after_segment(std::size_t k, double now) {
  segment(k);
  const std::size_t other_worker = 1 - worker_;
  std::array<double, 2> free;
  free[worker_] = now;
  free[other_worker] = std::max(now, free_[other_worker]);
  const double update = (execution_.update + execution_.latency).si();
  const double other = (execution_.kernel + execution_.latency).si();
  const double latency = execution_.latency.si();
  const double wait = execution_.wait.si();
  const Kernel* const kernels = step_.kernels.data();
  const KernelCost* const costs = costs_.data();
  const ParameterUpdate* ready = step_.updates.data() + next_;
  const ParameterUpdate* const end = step_.updates.data() + step_.updates.size();
  double cpu_busy = 0;
  double gpu_busy = 0;
  while (ready != end && static_cast<std::size_t>(ready->after) < k) {
    const std::size_t worker = free[other_worker] <= free[worker_] ? other_worker : worker_;
    std::vector<Interval>& taken = taken_[worker];
    double at = free[worker];
    for (const int after = ready->after; ready != end && ready->after == after; ++ready) {
      const auto u = static_cast<std::size_t>(ready->kernel);
      const double issue = kernels[u].kind == KernelKind::update ? update : other;
      const auto repeat = static_cast<double>(kernels[u].repeat);
      const double run = costs[u].total.si() * repeat;
      const Interval runs{at + issue, at + issue + run + (issue + wait) * (repeat - 1)};
      const double done = runs.end + wait;
      spans_[u] = {
          Seconds(at), Seconds(done), Seconds(runs.start), Seconds(runs.end), static_cast<int>(worker), true};
      taken.push_back(runs);
      at = done;
      cpu_busy += (issue - latency) * repeat;
      gpu_busy += run;
    }
    free[worker] = at;
    until_ = std::max(until_, at);
  }
  next_ = static_cast<std::size_t>(ready - step_.updates.data());
  cpu_busy_ += cpu_busy;
  gpu_busy_ += gpu_busy;
  if (free[other_worker] < free[worker_]) worker_ = other_worker;
  free_ = free;
  return free[worker_];
}

void UpdateWorkers::run(const IndependentChains& kernels) {
  const auto second = static_cast<std::size_t>(kernels.second);
  const auto end = static_cast<std::size_t>(kernels.end);
  for (; segment_ < end; ++segment_)
    spans_[segment_].worker = static_cast<int>(segment_ < second ? worker_ : 1 - worker_);
}

double UpdateWorkers::after_updates(std::size_t k, double now) {
  after_segment(k, now);
  return std::max(free_[0], free_[1]);
}

double UpdateWorkers::beside(const KernelSpan& span) {
  const double start = span.start.si();
  const double end = span.end.si();
  double sum = 0;
  for (std::size_t worker = 0; worker < taken_.size(); ++worker) {
    const std::vector<Interval>& taken = taken_[worker];
    std::size_t i = open_[worker];
    while (i < taken.size() && taken[i].end <= start) ++i;
    open_[worker] = i;
    for (; i < taken.size() && taken[i].start < end; ++i)
      sum += std::min(end, taken[i].end) - std::max(start, taken[i].start);
  }
  return sum;
}

// A worker that runs a kernel of the model runs no update: never are three beside.
Seconds UpdateWorkers::alone() const {
  double both = 0;
  auto b = taken_[1].begin();
  for (const Interval& a : taken_[0]) {
    while (b != taken_[1].end() && b->end <= a.start) ++b;
    for (auto c = b; c != taken_[1].end() && c->start < a.end; ++c)
      both += std::min(a.end, c->end) - std::max(a.start, c->start);
  }
  return Seconds(std::max(0.0, gpu_busy_ - beside_ - both));
}

}  // namespace tbdsim
