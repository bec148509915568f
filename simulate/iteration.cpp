#include "simulate/iteration.h"

#include <algorithm>
#include <cassert>
#include <cstdint>

namespace tbdsim {
namespace {

// Seconds of one kernel, or of each of several alike.
struct Work {
  double issue, run, host;
  bool waits;  // the thread waits after each
};

// Both clocks while kernels are issued and run, over iterations without end.
class Clocks {
 public:
  explicit Clocks(const Execution& execution)
      : wait_(execution.wait.si()),
        latency_(execution.latency.si()),
        gap_(execution.gap.si()),
        segment_(execution.segment),
        queue_(execution.queue),
        queues_(segment_ == 0 || segment_ > queue_),
        end_(execution.iteration.si()),
        waits_at_end_(execution.after_iteration) {}

  double cpu = 0, gpu = 0;
  double start = 0;  // on the GPU, of the last kernels issued

  void issue(const Work& work, std::int64_t count) {
    if (work.waits) return issue_and_wait(work, count);
    if (segment_ == 0) return enqueue(work, count);
    const double first = issue_segment(work, count);
    if (count == 0) return;
    if (count >= 2 * segment_) {  // one whole segment tells how long the others take
      const double cpu_before = cpu;
      issue_segment(work, count);
      const auto more = static_cast<double>(count / segment_) * (cpu - cpu_before);
      cpu += more;
      gpu += more;
      count %= segment_;
    }
    while (count > 0) issue_segment(work, count);
    start = first;
  }

  void end_iteration() {
    if (waits_at_end_) wait();
    cpu += end_;
  }

 private:
  // Nothing is left in the queue.
  void wait() {
    cpu = std::max(cpu, gpu) + wait_;
    in_segment_ = issued_ = 0;
    history_.clear();
    oldest_ = 0;
  }

  struct Issued {
    std::int64_t count;  // of all kernels so far
    double end;
  };

  // Up to the end of the segment; takes what it issued off `count`. Returns the start of the first.
  double issue_segment(const Work& work, std::int64_t& count) {
    const std::int64_t n = std::min(count, segment_ - in_segment_);
    enqueue(work, n);
    count -= n;
    in_segment_ += n;
    if (in_segment_ == segment_) wait();
    return start;
  }

  void issue_and_wait(const Work& work, std::int64_t count) {
    cpu += work.issue;
    start = std::max(gpu + gap_, cpu + latency_);
    const double each = std::max(gap_, wait_ + work.host + work.issue + latency_) + work.run;
    gpu = start + work.run + static_cast<double>(count - 1) * each;
    wait();
    cpu += work.host;
  }

  void enqueue(const Work& work, std::int64_t count) {
    start = std::max(gpu + gap_, cpu + work.issue + latency_);
    if (count == 1) {
      cpu += work.issue;
      gpu = start + work.run;
    } else {
      const auto n = static_cast<double>(count);
      cpu += n * work.issue;
      gpu = std::max(start + n * work.run + (n - 1) * gap_, cpu + latency_ + work.run);
    }
    if (!queues_) return;
    issued_ += count;
    history_.push_back({issued_, gpu});
    if (issued_ > queue_) cpu = std::max(cpu, room_in_queue(work));
  }

  // When the last kernel issued found room: the one `queue` before it has ended.
  double room_in_queue(const Work& work) {
    const std::int64_t ended = issued_ - queue_;
    while (history_[oldest_].count < ended) ++oldest_;
    const Issued& block = history_[oldest_];
    return block.end -
           static_cast<double>(block.count - ended) * (oldest_ + 1 == history_.size() ? work.run + gap_ : 0);
  }

  double wait_, latency_, gap_;
  std::int64_t segment_, queue_;
  bool queues_;  // more kernels may be issued without a wait than the queue holds
  double end_;
  bool waits_at_end_;
  std::int64_t issued_ = 0, in_segment_ = 0;
  std::vector<Issued> history_;
  std::size_t oldest_ = 0;
};

Work work_of(const Kernel& kernel, const KernelCost& cost, double batch, const Execution& execution) {
  const ThreadWork thread = thread_work(kernel, batch, execution);
  return {.issue = (thread.before + thread.issue).si(),
          .run = cost.total.si(),
          .host = thread.after.si(),
          .waits = thread.waits};
}

// The thread has waited, so that nothing of the iteration before is left: the first one is as every other.
bool starts_idle(const Execution& execution) {
  return execution.after_iteration &&
         execution.gap <= execution.wait + execution.iteration + execution.latency;
}

// As the iteration before has left both.
Clocks clocks_before(const TrainingStep& step, std::span<const KernelCost> costs, double batch,
                     const Execution& execution) {
  Clocks clocks(execution);
  if (starts_idle(execution)) {
    clocks.gpu = -(execution.wait + execution.iteration).si();  // when it was waited for
    return clocks;
  }
  for (std::size_t k = 0; k < costs.size(); ++k)
    clocks.issue(work_of(step.kernels[k], costs[k], batch, execution), step.kernels[k].repeat);
  clocks.end_iteration();
  return clocks;
}

}  // namespace

Timeline simulate_iteration(const TrainingStep& step, std::span<const KernelCost> costs, double batch,
                            const Execution& execution) {
  assert(costs.size() == step.kernels.size());
  Timeline timeline;
  timeline.kernels.resize(costs.size());
  Clocks clocks = clocks_before(step, costs, batch, execution);
  const double cpu = clocks.cpu;
  const double gpu = clocks.gpu;
  Seconds cpu_busy = execution.iteration, gpu_busy;
  for (std::size_t k = 0; k < costs.size(); ++k) {
    const Kernel& kernel = step.kernels[k];
    const Work work = work_of(kernel, costs[k], batch, execution);
    KernelSpan& span = timeline.kernels[k];
    span.issue = Seconds(clocks.cpu - cpu);
    clocks.issue(work, kernel.repeat);
    span.issued = Seconds(clocks.cpu - cpu);
    span.start = Seconds(clocks.start - cpu);
    span.end = Seconds(clocks.gpu - cpu);
    const auto repeat = static_cast<double>(kernel.repeat);
    cpu_busy += Seconds((work.issue + work.host) * repeat);
    if (kernel.kind != KernelKind::transfer) gpu_busy += costs[k].total * repeat;
  }
  clocks.end_iteration();
  const double gpu_period = starts_idle(execution) ? 0 : clocks.gpu - gpu;  // then as long as the CPU's
  timeline.cpu_busy = cpu_busy;
  timeline.gpu_busy = gpu_busy;
  timeline.iteration = Seconds(std::max(clocks.cpu - cpu, gpu_period));
  return timeline;
}

}  // namespace tbdsim
