#include "simulate/timeline/async_updates.h"

#include <algorithm>

namespace tbdsim {

AsyncUpdates::AsyncUpdates(const TrainingStep& step, std::span<const KernelCost> costs,
                           const LaunchModel& launch_model, std::span<KernelSpan> spans)
    : step_(step), costs_(costs), launch_model_(launch_model), spans_(spans) {
  if (launch_model.engine_threads < 2) return;
  for (std::vector<Interval>& updates : updates_) updates.reserve(step.updates.size());
}

// Records that the model's kernels before `end` were launched by the model's thread.
void AsyncUpdates::note_model_kernels(std::size_t end) {
  const bool after_all_updates = model_kernel_ < end && last_update_end_ <= spans_[model_kernel_].start.si();
  if (model_thread_ == 0 && after_all_updates) model_kernel_ = end;  // 0 is a span's default thread
  for (; model_kernel_ < end; ++model_kernel_) {
    KernelSpan& span = spans_[model_kernel_];
    if (span.async_update) continue;
    span.engine_thread = static_cast<int>(model_thread_);
    const bool is_copy = step_.kernels[model_kernel_].kind == KernelKind::transfer;
    if (span.start.si() < last_update_end_ && !is_copy) overlap_ += overlap_with_updates(span);
  }
}

double AsyncUpdates::schedule_ready(std::size_t k, double now) {
  note_model_kernels(k);
  const std::size_t model = model_thread_;
  const std::size_t other = 1 - model;
  std::array<double, 2> free;
  free[model] = now;
  free[other] = std::max(now, free_[other]);

  const double launch_latency = launch_model_.launch_latency.si();
  const double update_to_start = (launch_model_.update_overhead + launch_model_.launch_latency).si();
  const double copy_to_start = (launch_model_.launch_overhead + launch_model_.launch_latency).si();
  const double sync_overhead = launch_model_.sync_overhead.si();
  double cpu_busy = 0;
  double gpu_busy = 0;
  const auto is_ready = [&] {
    return next_update_ < step_.updates.size() &&
           static_cast<std::size_t>(step_.updates[next_update_].after) < k;
  };
  while (is_ready()) {
    const std::size_t thread = free[other] <= free[model] ? other : model;
    double at = free[thread];
    const int layer_ends = step_.updates[next_update_].after;
    while (next_update_ < step_.updates.size() && step_.updates[next_update_].after == layer_ends) {
      const auto u = static_cast<std::size_t>(step_.updates[next_update_++].kernel);
      const Kernel& kernel = step_.kernels[u];
      const auto repeat = static_cast<double>(kernel.repeat);
      const double to_start = kernel.kind == KernelKind::update ? update_to_start : copy_to_start;
      const double run = costs_[u].total.si() * repeat;
      const double start = at + to_start;
      const double end = at + to_start + run + (to_start + sync_overhead) * (repeat - 1);
      const double synchronized = end + sync_overhead;
      spans_[u] = {.launch_start = Seconds(at),
                   .launch_end = Seconds(synchronized),
                   .start = Seconds(start),
                   .end = Seconds(end),
                   .engine_thread = static_cast<int>(thread),
                   .async_update = true};
      updates_[thread].push_back({start, end});
      at = synchronized;
      cpu_busy += (to_start - launch_latency) * repeat;
      gpu_busy += run;
    }
    free[thread] = at;
    last_update_end_ = std::max(last_update_end_, at);
  }
  cpu_busy_ += cpu_busy;
  gpu_busy_ += gpu_busy;
  if (free[other] < free[model]) model_thread_ = other;
  free_ = free;
  return free_[model_thread_];
}

double AsyncUpdates::schedule_and_join(std::size_t k, double now) {
  schedule_ready(k, now);
  return std::max(free_[0], free_[1]);
}

void AsyncUpdates::assign(const IndependentChains& chains) {
  const auto second = static_cast<std::size_t>(chains.second);
  const auto end = static_cast<std::size_t>(chains.end);
  for (; model_kernel_ < end; ++model_kernel_) {
    const std::size_t thread = model_kernel_ < second ? model_thread_ : 1 - model_thread_;
    spans_[model_kernel_].engine_thread = static_cast<int>(thread);
  }
}

// Seconds of `span`, the newest kernel of the model, in which updates run.
double AsyncUpdates::overlap_with_updates(const KernelSpan& span) {
  const double start = span.start.si();
  const double end = span.end.si();
  double sum = 0;
  for (std::size_t thread = 0; thread < updates_.size(); ++thread) {
    const std::vector<Interval>& updates = updates_[thread];
    std::size_t i = first_overlapping_[thread];
    while (i < updates.size() && updates[i].end <= start) ++i;
    first_overlapping_[thread] = i;
    for (; i < updates.size() && updates[i].start < end; ++i)
      sum += std::min(end, updates[i].end) - std::max(start, updates[i].start);
  }
  return sum;
}

// A thread that launches the model's kernels launches no updates meanwhile, so never do two updates and a
// kernel of the model run at once.
Seconds AsyncUpdates::exposed() const {
  double two_updates = 0;
  auto b = updates_[1].begin();
  for (const Interval& a : updates_[0]) {
    while (b != updates_[1].end() && b->end <= a.start) ++b;
    for (auto c = b; c != updates_[1].end() && c->start < a.end; ++c)
      two_updates += std::min(a.end, c->end) - std::max(a.start, c->start);
  }
  return Seconds(std::max(0.0, gpu_busy_ - overlap_ - two_updates));
}

}  // namespace tbdsim
