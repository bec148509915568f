#include "simulate/timeline/timeline.h"

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <memory>
#include <numeric>

#include "simulate/timeline/async_updates.h"

namespace tbdsim {
namespace {

// Seconds of one kernel, or of each of several alike.
struct Work {
  double issue, run, host;
  bool waits;  // the thread waits after each
};

// Kernels alike that were issued since the thread waited last.
struct Issued {
  std::int64_t count;  // of all kernels so far
  double end;
};

// Both clocks while kernels are issued and run, over iterations without end. What is rare is apart and takes
// the clocks by value, so that they stay in registers.
class Clocks {
 public:
  // `history` has room for all that is issued; none where nothing queues.
  Clocks(const LaunchModel& execution, Issued* history)
      : wait_(execution.wait.si()),
        latency_(execution.latency.si()),
        gap_(execution.gap.si()),
        segment_(execution.segment),
        queue_(execution.queue),
        history_(history) {}

  // More kernels may be issued without a wait than the queue holds.
  [[nodiscard]] static bool queues(const LaunchModel& execution) {
    return execution.segment == 0 || execution.segment > execution.queue;
  }

  double cpu = 0, gpu = 0;
  double start = 0;  // on the GPU, of the last kernels issued

  [[nodiscard]] bool idle() const { return in_segment_ == 0; }

  void issue(const Work& work, std::int64_t count) {
    if (work.waits) {
      issue_and_wait(work, count);
    } else if (count > 1) {
      *this = after_several(*this, work.issue, work.run, count);
    } else {
      start = std::max(gpu + gap_, cpu + work.issue + latency_);
      cpu += work.issue;
      gpu = start + work.run;
      add(work, 1);
    }
  }

  void end_iteration(const LaunchModel& execution) {
    if (execution.after_iteration) wait();
    cpu += execution.iteration.si();
  }

  // Nothing is left in the queue.
  void wait() {
    cpu = std::max(cpu, gpu) + wait_;
    in_segment_ = issued_ = newest_ = oldest_ = 0;
  }

 private:
  void issue_and_wait(const Work& work, std::int64_t count) {
    cpu += work.issue;
    start = std::max(gpu + gap_, cpu + latency_);
    const double each = std::max(gap_, wait_ + work.host + work.issue + latency_) + work.run;
    gpu = start + work.run + static_cast<double>(count - 1) * each;
    wait();
    cpu += work.host;
  }

  [[gnu::noinline]] static Clocks after_several(Clocks clocks, double issue, double run, std::int64_t count) {
    clocks.issue_several({issue, run, 0, false}, count);
    return clocks;
  }

  void issue_several(const Work& work, std::int64_t count) {
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

  // Up to the end of the segment; takes what it issued off `count`. Returns the start of the first.
  double issue_segment(const Work& work, std::int64_t& count) {
    const std::int64_t n = std::min(count, segment_ - in_segment_);
    enqueue(work, n);
    count -= n;
    return start;
  }

  void enqueue(const Work& work, std::int64_t count) {
    const auto n = static_cast<double>(count);
    start = std::max(gpu + gap_, cpu + work.issue + latency_);
    cpu += n * work.issue;
    gpu = std::max(start + n * work.run + (n - 1) * gap_, cpu + latency_ + work.run);
    add(work, count);
  }

  // To the segment and the queue.
  void add(const Work& work, std::int64_t count) {
    in_segment_ += count;
    if (in_segment_ == segment_) return wait();
    if (history_ == nullptr) return;
    issued_ += count;
    history_[newest_++] = {issued_, gpu};
    if (issued_ > queue_) cpu = std::max(cpu, room_in_queue(work));
  }

  // When the last kernel issued found room: the one `queue` before it has ended.
  double room_in_queue(const Work& work) {
    const std::int64_t ended = issued_ - queue_;
    while (history_[oldest_].count < ended) ++oldest_;
    const Issued& block = history_[oldest_];
    return block.end -
           static_cast<double>(block.count - ended) * (oldest_ + 1 == newest_ ? work.run + gap_ : 0);
  }

  double wait_, latency_, gap_;
  std::int64_t segment_, queue_, in_segment_ = 0, issued_ = 0;
  Issued* history_;
  std::size_t newest_ = 0, oldest_ = 0;  // after the newest; where the queue begins
};

[[gnu::always_inline]] inline Work work_of(const Kernel& kernel, const KernelCost& cost, double batch,
                                           const LaunchModel& execution) {
  const HostWork thread = thread_work(kernel, batch, execution);
  return {.issue = (thread.before + thread.issue).si(),
          .run = cost.total.si(),
          .host = thread.after.si(),
          .waits = thread.waits};
}

// The thread has waited, so that nothing of the iteration before is left: the first one is as every other.
bool starts_idle(const LaunchModel& execution) {
  return execution.after_iteration &&
         execution.gap <= execution.wait + execution.iteration + execution.latency;
}

// From `clocks`, when all is done, until all of both chains is: the clocks then. stretch(first, end, since,
// alone, together) is called for each with how long it takes.
template <class Visit, class Stretch>
[[gnu::noinline]] Clocks run_both(const IndependentChains& chains, const TrainingStep& step,
                                  std::span<const KernelCost> costs, double batch,
                                  const LaunchModel& execution, Clocks clocks, Visit visit, Stretch stretch) {
  double busy = execution.wait.si();
  const auto alone = [&](int first, int end) {
    Clocks worker = clocks;
    for (auto k = static_cast<std::size_t>(first); k < static_cast<std::size_t>(end); ++k) {
      const Work work = work_of(step.kernels[k], costs[k], batch, execution);
      const double turned = worker.cpu;
      if (costs[k].runs()) worker.issue(work, step.kernels[k].repeat);
      visit(k, work, step.kernels[k].repeat, turned, worker);
      busy += work.run * static_cast<double>(step.kernels[k].repeat);
    }
    if (!worker.idle()) worker.wait();
    return worker.cpu - clocks.cpu;
  };
  const double first = alone(chains.first, chains.second);
  const double second = alone(chains.second, chains.end);
  const double both = std::max({first, second, busy});
  stretch(chains.first, chains.second, clocks.cpu, first, both);
  stretch(chains.second, chains.end, clocks.cpu, second, both);
  clocks.cpu += both;
  clocks.gpu = clocks.cpu - execution.wait.si();
  return clocks;
}

// Calls visit(k, work, when the thread turned to it, clocks) for each kernel when it has been issued. Where
// updates run beside they are left out. The others say when the thread goes on: turn(k, now) when it has
// waited for all before k, and with all clocks updates(k, clocks) for the first of several updates and
// pair(chains, clocks) for two chains side by side. Returns the clocks at the end.
template <bool beside, class Visit, class Turn, class Updates, class Pair>
[[gnu::always_inline]] inline Clocks run(const TrainingStep& step, std::span<const KernelCost> costs,
                                         double batch, const LaunchModel& execution, Clocks clocks,
                                         Visit visit, Turn turn, Updates updates, Pair pair) {
  std::size_t k = 0;
  auto chains = step.chains.begin();
  const auto next_stop = [&] {
    return beside && chains != step.chains.end() ? static_cast<std::size_t>(chains->first) : costs.size();
  };
  std::size_t stop = next_stop();
  const auto is_update = [&] { return beside && updates_parameter(step.kernels[k]); };
  while (k < costs.size()) {
    if (beside && k == stop) {
      clocks = pair(*chains, clocks);
      k = static_cast<std::size_t>((chains++)->end);
      stop = next_stop();
      clocks.cpu = turn(k, clocks.cpu);
      continue;
    }
    if (is_update()) {
      clocks = updates(k, clocks);
      while (k < costs.size() && is_update()) ++k;
      continue;
    }
    do {
      const Kernel& kernel = step.kernels[k];
      const auto issue = [&](const Work& work, std::int64_t repeat) __attribute__((always_inline)) {
        const double turned = clocks.cpu;
        if (work.run > 0) clocks.issue(work, repeat);
        visit(k, work, repeat, turned, clocks);
      };
      if (is_plain(kernel)) {  // as below, with less to ask
        issue({execution.kernel.si(), costs[k].total.si(), 0, false}, 1);
      } else {
        issue(work_of(kernel, costs[k], batch, execution), kernel.repeat);
      }
      ++k;
    } while (k < stop && !(beside && clocks.idle()) && !is_update());
    if (beside && clocks.idle()) clocks.cpu = turn(k, clocks.cpu);
  }
  clocks.end_iteration(execution);
  return clocks;
}

// All of simulate_iteration, with a second worker or without.
template <bool beside>
Timeline simulate(const TrainingStep& step, std::span<const KernelCost> costs, double batch,
                  const LaunchModel& execution, Timeline timeline) {
  assert(costs.size() == step.kernels.size());
  const bool queues = Clocks::queues(execution);
  const auto history =  // of the iteration before and this one
      queues ? std::make_unique_for_overwrite<Issued[]>(2 * costs.size()) : nullptr;
  Clocks before(execution, history.get());  // as the iteration before has left both
  const auto nothing = [](auto&&...) {};
  const auto same = [](auto, auto clocks) { return clocks; };
  if (starts_idle(execution)) {
    before.gpu = -(execution.wait + execution.iteration).si();  // when it was waited for
  } else {
    before = run<beside>(step, costs, batch, execution, before, nothing, same, same,
                         [&](const IndependentChains& chains, Clocks clocks) {
                           if (!clocks.idle()) clocks.wait();
                           return run_both(chains, step, costs, batch, execution, clocks, nothing, nothing);
                         });
  }
  timeline.kernels.resize(costs.size());
  Seconds cpu_busy = execution.iteration, gpu_busy;
  const double cpu = before.cpu;
  UpdateWorkers workers(step, costs, execution, timeline.kernels);
  const auto visit = [&](std::size_t k, const Work& work, std::int64_t times, double turned,
                         const Clocks& clocks) __attribute__((always_inline)) {
    const Kernel& kernel = step.kernels[k];
    KernelSpan& span = timeline.kernels[k];
    span = {Seconds(turned - cpu), Seconds(clocks.cpu - cpu), Seconds(clocks.start - cpu),
            Seconds(clocks.gpu - cpu)};
    if (work.run <= 0) return;
    const auto repeat = static_cast<double>(times);
    cpu_busy += Seconds((work.issue + work.host) * repeat);
    if (kernel.kind != KernelKind::transfer) gpu_busy += Seconds(work.run * repeat);
  };
  const auto updates = [&](std::size_t k, Clocks clocks) {
    if (!clocks.idle()) {
      clocks.wait();  // for what was issued, if only in the iteration before
      if (k > 0) timeline.kernels[k - 1].issued = Seconds(clocks.cpu - cpu);
    }
    clocks.cpu = cpu + workers.after_updates(k, clocks.cpu - cpu);
    return clocks;
  };
  const auto stretch = [&](int first, int end, double since, double alone, double together) {
    const Seconds begin(since - cpu);
    const double factor = together / alone;
    for (auto k = static_cast<std::size_t>(first); k < static_cast<std::size_t>(end); ++k) {
      KernelSpan& span = timeline.kernels[k];
      for (Seconds* at : {&span.issue, &span.issued, &span.start, &span.end})
        *at = begin + (*at - begin) * factor;
    }
    timeline.kernels[static_cast<std::size_t>(end - 1)].issued = begin + Seconds(together);
  };
  const Clocks after = run<beside>(
      step, costs, batch, execution, before, visit,
      [&](std::size_t k, double now) { return cpu + workers.after_segment(k, now - cpu); }, updates,
      [&](const IndependentChains& chains, Clocks clocks) {
        clocks = updates(static_cast<std::size_t>(chains.first), clocks);
        clocks = run_both(chains, step, costs, batch, execution, clocks, visit, stretch);
        workers.run(chains);
        return clocks;
      });
  const double gpu_period = starts_idle(execution) ? 0 : after.gpu - before.gpu;  // then as long as the CPU's
  timeline.updates_alone = 1;
  if constexpr (beside) {
    cpu_busy += workers.cpu_busy();
    const Seconds alone = workers.alone();
    gpu_busy += alone;
    if (workers.gpu_busy() > Seconds(0)) timeline.updates_alone = alone / workers.gpu_busy();
  }
  timeline.cpu_busy = cpu_busy;
  timeline.gpu_busy = gpu_busy;
  timeline.iteration = Seconds(std::max(after.cpu - cpu, gpu_period));
  return timeline;
}

}  // namespace

std::vector<std::size_t> in_order_of_issue(const Timeline& timeline) {
  std::vector<std::size_t> order(timeline.kernels.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return timeline.kernels[a].issue < timeline.kernels[b].issue;
  });
  return order;
}

Timeline simulate_iteration(const TrainingStep& step, std::span<const KernelCost> costs, double batch,
                            const LaunchModel& execution, Timeline before) {
  return execution.workers > 1 ? simulate<true>(step, costs, batch, execution, std::move(before))
                               : simulate<false>(step, costs, batch, execution, std::move(before));
}

}  // namespace tbdsim
