// The two clocks of a training iteration: a CPU thread launches kernels in program order, the GPU executes
// them in that order. Times in seconds, kernels counted from the last synchronization:
//
//   launched[i] = max(launched[i-1], end[i-1-depth]) + launch     CPU: kernel i is launched
//   start[i]    = max(end[i-1] + gap, launched[i] + latency)      GPU: kernel i starts
//   end[i]      = start[i] + run                                  GPU: kernel i ends
//
//   launch   CPU time of the launch; run: GPU time of the kernel (LaunchWork)
//   depth, gap, latency    launch_queue_depth, kernel_gap, launch_latency of the LaunchModel
//
// When the thread synchronizes after kernel i it continues at max(launched[i], end[i]) + sync_overhead.
//
// `count` equal kernels are launched as one block: the first is followed exactly, each further one takes
// max(launch, run + gap).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "costmodel/estimate.h"
#include "simulate/framework/launch_model.h"

namespace tbdsim {

// One execution of a kernel, in seconds.
struct LaunchWork {
  double launch = 0;     // CPU time until it is launched, with what is prepared before
  double run = 0;        // GPU time
  double post_sync = 0;  // CPU time after the synchronization
  bool synchronizes = false;
};

[[nodiscard]] inline LaunchWork launch_work(const Kernel& kernel, const KernelCost& cost, double batch,
                                            const LaunchModel& launch_model) {
  const HostWork host = host_work(kernel, batch, launch_model);
  return {.launch = (host.pre_launch + host.launch).si(),
          .run = cost.total.si(),
          .post_sync = host.post_sync.si(),
          .synchronizes = host.synchronizes};
}

// A plain value: a copy continues from the same state. All copies write the same history, so only one of them
// may launch kernels until the next synchronization.
class LaunchQueue {
 public:
  // Kernels launched in one block.
  struct Entry {
    std::int64_t launched;  // since the last synchronization, this block included
    double end;             // of the block's last kernel
  };
  using History = std::unique_ptr<Entry[]>;

  // Room for two iterations of `blocks` blocks; null where the queue cannot be full before the thread
  // synchronizes.
  [[nodiscard]] static History history_for(const LaunchModel& launch_model, std::size_t blocks);

  // `history` must outlive this and its copies.
  LaunchQueue(const LaunchModel& launch_model, const History& history);

  double cpu = 0;    // the thread continues
  double gpu = 0;    // the last kernel launched ends
  double start = 0;  // the first kernel of the last block launched starts

  // Whether no kernel was launched since the last synchronization.
  [[nodiscard]] bool drained() const { return since_sync_ == 0; }

  void launch(const LaunchWork& work, std::int64_t count) {
    if (work.synchronizes) {
      *this = after_synchronizing(*this, work, count);
    } else if (count > 1) {
      *this = after_block(*this, work, count);
    } else {
      enqueue_one(work);
    }
  }

  void synchronize() {
    cpu = std::max(cpu, gpu) + sync_overhead_;
    since_sync_ = launched_ = 0;
    newest_ = oldest_ = 0;
  }

  void end_iteration(const LaunchModel& launch_model) {
    if (launch_model.sync_after_iteration) synchronize();
    cpu += launch_model.iteration_overhead.si();
  }

 private:
  // The state after `count` launches. Returned by value, so that a caller's queue can be kept in registers.
  [[nodiscard]] static LaunchQueue after_synchronizing(LaunchQueue queue, LaunchWork work,
                                                       std::int64_t count);
  [[nodiscard]] static LaunchQueue after_block(LaunchQueue queue, LaunchWork work, std::int64_t count);

  void enqueue_one(const LaunchWork& work) {
    start = std::max(gpu + kernel_gap_, cpu + work.launch + launch_latency_);
    cpu += work.launch;
    gpu = start + work.run;
    record(work, 1);
  }

  // Counts the block that was just launched.
  void record(const LaunchWork& work, std::int64_t count) {
    since_sync_ += count;
    if (since_sync_ == kernels_per_sync_) return synchronize();
    if (history_ == nullptr) return;
    launched_ += count;
    history_[newest_++] = {launched_, gpu};
    if (launched_ > queue_depth_) cpu = std::max(cpu, room_in_queue(work));
  }

  void enqueue(const LaunchWork& work, std::int64_t count);
  double enqueue_until_sync(const LaunchWork& work, std::int64_t& count);
  double room_in_queue(const LaunchWork& work);

  double sync_overhead_, launch_latency_, kernel_gap_;
  std::int64_t kernels_per_sync_, queue_depth_;
  std::int64_t since_sync_ = 0;  // kernels launched since the last synchronization
  std::int64_t launched_ = 0;    // the same where there is a history
  Entry* history_;
  std::size_t newest_ = 0;  // past the newest entry
  std::size_t oldest_ = 0;  // the entry of the oldest kernel that may still be in the queue
};

// Whether every iteration, the first one too, starts with nothing left on the GPU: the thread synchronizes at
// the end of each and the GPU is ready again before the next kernel could start.
[[nodiscard]] bool starts_drained(const LaunchModel& launch_model);

}  // namespace tbdsim
