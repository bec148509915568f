#include "simulate/timeline/launch_queue.h"

namespace tbdsim {
namespace {

// More kernels may be launched before the thread synchronizes than the queue holds.
bool can_fill(const LaunchModel& launch_model) {
  return launch_model.kernels_per_sync == 0 ||
         launch_model.kernels_per_sync > launch_model.launch_queue_depth;
}

}  // namespace

LaunchQueue::History LaunchQueue::history_for(const LaunchModel& launch_model, std::size_t blocks) {
  return can_fill(launch_model) ? std::make_unique_for_overwrite<Entry[]>(2 * blocks) : nullptr;
}

LaunchQueue::LaunchQueue(const LaunchModel& launch_model, const History& history)
    : sync_overhead_(launch_model.sync_overhead.si()),
      launch_latency_(launch_model.launch_latency.si()),
      kernel_gap_(launch_model.kernel_gap.si()),
      kernels_per_sync_(launch_model.kernels_per_sync),
      queue_depth_(launch_model.launch_queue_depth),
      history_(history.get()) {}

// The first kernel is launched after those before it; each further one when the thread has synchronized with
// the one before and processed its result.
LaunchQueue LaunchQueue::after_synchronizing(LaunchQueue queue, LaunchWork work, std::int64_t count) {
  const double from_end_to_start =
      queue.sync_overhead_ + work.post_sync + work.launch + queue.launch_latency_;
  const double between_kernels = std::max(queue.kernel_gap_, from_end_to_start);
  queue.cpu += work.launch;
  queue.start = std::max(queue.gpu + queue.kernel_gap_, queue.cpu + queue.launch_latency_);
  queue.gpu = queue.start + work.run + static_cast<double>(count - 1) * (between_kernels + work.run);
  queue.synchronize();
  queue.cpu += work.post_sync;
  return queue;
}

LaunchQueue LaunchQueue::after_block(LaunchQueue queue, LaunchWork work, std::int64_t count) {
  if (queue.kernels_per_sync_ == 0) {
    queue.enqueue(work, count);
    return queue;
  }
  const double first_start = queue.enqueue_until_sync(work, count);
  if (count == 0) return queue;
  if (count >=
      2 * queue.kernels_per_sync_) {  // all whole runs from one synchronization to the next are alike
    const double before = queue.cpu;
    queue.enqueue_until_sync(work, count);
    const auto further = static_cast<double>(count / queue.kernels_per_sync_);
    const double time = further * (queue.cpu - before);
    queue.cpu += time;
    queue.gpu += time;
    count %= queue.kernels_per_sync_;
  }
  while (count > 0) queue.enqueue_until_sync(work, count);
  queue.start = first_start;
  return queue;
}

// Launches as many of `count` kernels as fit before the next synchronization and takes them off `count`.
// Returns the start of the first.
double LaunchQueue::enqueue_until_sync(const LaunchWork& work, std::int64_t& count) {
  const std::int64_t launched = std::min(count, kernels_per_sync_ - since_sync_);
  enqueue(work, launched);
  count -= launched;
  return start;
}

void LaunchQueue::enqueue(const LaunchWork& work, std::int64_t count) {
  const auto n = static_cast<double>(count);
  start = std::max(gpu + kernel_gap_, cpu + work.launch + launch_latency_);
  cpu += n * work.launch;
  const double back_to_back = start + n * work.run + (n - 1) * kernel_gap_;
  const double last_when_launched = cpu + launch_latency_ + work.run;
  gpu = std::max(back_to_back, last_when_launched);
  record(work, count);
}

// End of the kernel that must have ended before the newest one is queued. Within the newest block,
// kernels end one run time and one gap apart; an earlier block counts as a whole.
double LaunchQueue::room_in_queue(const LaunchWork& work) {
  const std::int64_t must_have_ended = launched_ - queue_depth_;
  while (history_[oldest_].launched < must_have_ended) ++oldest_;
  const Entry& block = history_[oldest_];
  const bool is_newest = oldest_ + 1 == newest_;
  const double apart = is_newest ? work.run + kernel_gap_ : 0;
  return block.end - static_cast<double>(block.launched - must_have_ended) * apart;
}

bool starts_drained(const LaunchModel& launch_model) {
  return launch_model.sync_after_iteration && launch_model.kernel_gap <= launch_model.sync_overhead +
                                                                             launch_model.iteration_overhead +
                                                                             launch_model.launch_latency;
}

}  // namespace tbdsim
