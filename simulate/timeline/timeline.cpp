#include "simulate/timeline/timeline.h"

#include <algorithm>
#include <cassert>
#include <numeric>
#include <utility>

#include "simulate/timeline/async_updates.h"
#include "simulate/timeline/launch_queue.h"

namespace tbdsim {
namespace {

// Follows one iteration and writes when its kernels are launched and run. `queue.cpu` at the beginning of
// `run` is the start of the iteration.
class IterationRun {
 public:
  IterationRun(const TrainingStep& step, std::span<const KernelCost> costs, double batch,
               const LaunchModel& launch_model, Timeline& timeline)
      : step_(step),
        costs_(costs),
        batch_(batch),
        launch_model_(launch_model),
        timeline_(timeline),
        updates_(step, costs, launch_model, timeline.kernels) {}

  // Returns the queue at the end of the iteration and records nothing, except that with two threads the
  // updates depend on the recorded times.
  LaunchQueue run_ahead(LaunchQueue queue) {
    if (launch_model_.engine_threads > 1) return run(queue);
    for (std::size_t k = 0; k < costs_.size(); ++k) launch(k, queue);
    queue.end_iteration(launch_model_);
    return queue;
  }

  // Returns the queue at the end of the iteration.
  LaunchQueue run(LaunchQueue queue) {
    start_ = queue.cpu;
    busy_ = {launch_model_.iteration_overhead.si(), 0};
    queue = launch_model_.engine_threads > 1 ? run_with_two_threads(queue) : run_with_one_thread(queue);
    queue.end_iteration(launch_model_);
    write_busy_times();
    return queue;
  }

 private:
  // Seconds in which kernels of the model are launched or their results processed (cpu), and run (gpu).
  struct BusyTimes {
    double cpu = 0, gpu = 0;
  };

  LaunchQueue run_with_one_thread(LaunchQueue queue) {
    BusyTimes busy = busy_;
    for (std::size_t k = 0; k < costs_.size(); ++k) launch_and_record(k, queue, busy);
    busy_ = busy;
    return queue;
  }

  LaunchQueue run_with_two_threads(LaunchQueue queue) {
    auto chains = step_.chains.begin();
    std::size_t k = 0;
    while (k < costs_.size()) {
      if (chains != step_.chains.end() && k == static_cast<std::size_t>(chains->first)) {
        queue = run_concurrently(*chains, finish_updates(k, queue));
        k = static_cast<std::size_t>(chains->end);
        ++chains;
      } else if (updates_parameter(step_.kernels[k])) {
        queue = finish_updates(k, queue);
        while (k < costs_.size() && updates_parameter(step_.kernels[k])) ++k;
        continue;
      } else {
        launch_and_record(k, queue, busy_);
        ++k;
      }
      if (queue.drained()) queue.cpu = start_ + updates_.schedule_ready(k, queue.cpu - start_);
    }
    return queue;
  }

  // Launches kernel k, unless it is a copy that is not made and takes no time.
  LaunchWork launch(std::size_t k, LaunchQueue& queue) const {
    const Kernel& kernel = step_.kernels[k];
    const LaunchWork work = launch_work(kernel, costs_[k], batch_, launch_model_);
    if (work.run > 0) queue.launch(work, kernel.repeat);
    return work;
  }

  // Inlined where it is called: the loop over kernels is a tenth of a prediction.
  [[gnu::always_inline]] void launch_and_record(std::size_t k, LaunchQueue& queue, BusyTimes& busy) {
    const double launch_start = queue.cpu;
    const LaunchWork work = launch(k, queue);
    timeline_.kernels[k] = {.launch_start = Seconds(launch_start - start_),
                            .launch_end = Seconds(queue.cpu - start_),
                            .start = Seconds(queue.start - start_),
                            .end = Seconds(queue.gpu - start_)};
    if (work.run <= 0) return;
    const Kernel& kernel = step_.kernels[k];
    const auto repeat = static_cast<double>(kernel.repeat);
    busy.cpu += (work.launch + work.post_sync) * repeat;
    if (kernel.kind != KernelKind::transfer) busy.gpu += work.run * repeat;
  }

  // Synchronizes with the kernels before k and completes the updates that are then ready.
  LaunchQueue finish_updates(std::size_t k, LaunchQueue queue) {
    if (!queue.drained()) {
      queue.synchronize();
      if (k > 0) timeline_.kernels[k - 1].launch_end = Seconds(queue.cpu - start_);
    }
    queue.cpu = start_ + updates_.schedule_and_join(k, queue.cpu - start_);
    return queue;
  }

  // Returns the queue when both chains are done.
  LaunchQueue run_concurrently(const IndependentChains& chains, LaunchQueue queue) {
    const double begin = queue.cpu;
    double all_kernels = launch_model_.sync_overhead.si();
    const double first = run_alone(chains.first, chains.second, queue, all_kernels);
    const double second = run_alone(chains.second, chains.end, queue, all_kernels);
    const double both = std::max({first, second, all_kernels});
    stretch(chains.first, chains.second, begin, both / first, both);
    stretch(chains.second, chains.end, begin, both / second, both);
    updates_.assign(chains);
    queue.cpu += both;
    queue.gpu = queue.cpu - launch_model_.sync_overhead.si();
    return queue;
  }

  // Seconds that a chain takes by itself, with a synchronization at its end. Adds its kernels' run times.
  double run_alone(int first, int end, LaunchQueue queue, double& run_times) {
    const double begin = queue.cpu;
    for (auto k = static_cast<std::size_t>(first); k < static_cast<std::size_t>(end); ++k) {
      launch_and_record(k, queue, busy_);
      run_times += costs_[k].total.si() * static_cast<double>(step_.kernels[k].repeat);
    }
    if (!queue.drained()) queue.synchronize();
    return queue.cpu - begin;
  }

  // Multiplies the times of a chain after `begin` by `factor`, so that it takes `time` in all.
  void stretch(int first, int end, double begin_on_queue, double factor, double time) {
    const Seconds begin(begin_on_queue - start_);
    for (auto k = static_cast<std::size_t>(first); k < static_cast<std::size_t>(end); ++k) {
      KernelSpan& span = timeline_.kernels[k];
      for (Seconds* at : {&span.launch_start, &span.launch_end, &span.start, &span.end})
        *at = begin + (*at - begin) * factor;
    }
    timeline_.kernels[static_cast<std::size_t>(end - 1)].launch_end = begin + Seconds(time);
  }

  void write_busy_times() {
    timeline_.cpu_busy = Seconds(busy_.cpu);
    timeline_.gpu_busy = Seconds(busy_.gpu);
    timeline_.exposed_update_share = 1;
    if (launch_model_.engine_threads == 1) return;
    const Seconds exposed = updates_.exposed();
    timeline_.cpu_busy += updates_.cpu_busy();
    timeline_.gpu_busy += exposed;
    if (updates_.gpu_busy() > Seconds(0)) timeline_.exposed_update_share = exposed / updates_.gpu_busy();
  }

  const TrainingStep& step_;
  std::span<const KernelCost> costs_;
  double batch_;
  const LaunchModel& launch_model_;
  Timeline& timeline_;
  AsyncUpdates updates_;
  double start_ = 0;
  BusyTimes busy_;
};

}  // namespace

std::vector<std::size_t> in_launch_order(const Timeline& timeline) {
  std::vector<std::size_t> order(timeline.kernels.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return timeline.kernels[a].launch_start < timeline.kernels[b].launch_start;
  });
  return order;
}

Timeline simulate_timeline(const TrainingStep& step, std::span<const KernelCost> costs, double batch,
                           const LaunchModel& launch_model, Timeline reuse) {
  assert(costs.size() == step.kernels.size());
  Timeline timeline = std::move(reuse);
  timeline.kernels.resize(costs.size());
  const LaunchQueue::History history = LaunchQueue::history_for(launch_model, costs.size());
  const auto iteration = [&] { return IterationRun(step, costs, batch, launch_model, timeline); };

  LaunchQueue start(launch_model, history);
  const bool drained = starts_drained(launch_model);
  if (drained) {
    start.gpu = -(launch_model.sync_overhead + launch_model.iteration_overhead).si();
  } else {
    start = iteration().run_ahead(start);  // the iteration before leaves kernels on the GPU
  }
  const LaunchQueue end = iteration().run(start);
  const double cpu_period = end.cpu - start.cpu;
  const double gpu_period = drained ? 0 : end.gpu - start.gpu;  // drained: the CPU's includes the GPU's
  timeline.iteration = Seconds(std::max(cpu_period, gpu_period));
  return timeline;
}

}  // namespace tbdsim
