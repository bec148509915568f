// How a framework's CPU side drives the GPU: the overhead of launching kernels and where the launching thread
// synchronizes. The `execution` part of a framework file. At most four of the times are fitted to training
// runs of a version; the others are published or estimates (`sources` says which).
#pragma once

#include <cstdint>

#include "costmodel/estimate.h"
#include "graphs/kernel.h"
#include "hwspecs/base/quantity.h"
#include "hwspecs/base/sources.h"

namespace tbdsim {

// The comment after each member names its key in the file.
struct LaunchModel {
  // CPU time of the launching thread.
  Seconds launch_overhead{};     // `kernel`: for each kernel or copy
  Seconds loop_step_overhead{};  // `step`: the same in the steps of a loop that the framework runs; 0: as any
  Seconds update_overhead{};     // `update`: the same for a kernel that updates a parameter
  // `cudnn`: more for a convolution or batch norm, a call of cuDNN; 0 where a file gives `kernel` only
  Seconds library_call{};
  Seconds sync_overhead{};       // `wait`: from the end of the last kernel until a waiting thread continues
  Seconds iteration_overhead{};  // `iteration`: once an iteration: session call, feeds, fetches, the script

  // GPU time.
  Seconds launch_latency{};  // `latency`: from the end of a launch to the kernel's start on an idle GPU
  Seconds kernel_gap{};      // `gap`: between two kernels when the second was launched in time

  // Where the thread synchronizes with the GPU; it always does after a copy to the host.
  std::int64_t kernels_per_sync = 0;  // `segment`: after so many kernels; 0: never
  bool sync_after_update = false;     // `after_update`
  bool sync_after_iteration = true;   // `after_iteration`

  std::int64_t engine_threads = 1;          // `workers`: 1 or 2, each with a stream (async_updates.h)
  std::int64_t launch_queue_depth = 1'024;  // `queue`: the most kernels launched and not yet done
  // `one_interpreter`: one Python process drives all GPUs of a machine. Its host work before copies to a GPU
  // (targets of detectors) and after copies from it (proposals) is for one GPU after another.
  bool one_interpreter = false;
  // CPU threads that read and decode samples for each GPU.
  int input_threads = 0;   // in the runs that the framework is of; 0: samples are made up on the GPU
  int loader_threads = 4;  // of its loader, where real input is asked for and `input_threads` is 0. Estimate:
                           // the default of examples/imagenet of PyTorch and of MXNet's ImageRecordIter
  Sources sources{};       // of the times and counts given, by key
};

// CPU time that one execution of a kernel costs the launching thread, in the order in which it is spent.
struct HostWork {
  Seconds pre_launch;  // prepares what is copied to the GPU
  Seconds launch;
  Seconds post_sync;          // processes what was copied to the host
  bool synchronizes = false;  // between launch and post_sync
};

// True for a convolution and a batch norm, but not for one of the framework's own.
[[nodiscard]] inline bool calls_library(const Kernel& kernel) {
  return kernel.kind == KernelKind::convolution ||
         (kernel.kind == KernelKind::batch_norm && kernel.access != Access::elements);
}

[[nodiscard]] inline HostWork host_work(const Kernel& kernel, double batch, const LaunchModel& launch_model) {
  const bool in_loop = kernel.repeat > 1 && launch_model.loop_step_overhead > Seconds(0);
  HostWork work;
  work.launch = in_loop ? launch_model.loop_step_overhead : launch_model.launch_overhead;
  if (calls_library(kernel)) work.launch += launch_model.library_call;
  // cuDNN launches these copies within the call of the convolution, which has the time of both. With a launch
  // of their own a larger batch that runs in fp32 without them would take less time than a smaller one.
  if (kernel.tf32_only && kernel.kind == KernelKind::transpose) work.launch = Seconds(0);
  if (kernel.kind == KernelKind::update) {
    work.launch = launch_model.update_overhead;
    work.synchronizes = launch_model.sync_after_update;
  }
  if (kernel.kind == KernelKind::transfer) {
    const Seconds processing(kernel.host_nanoseconds.at(batch) * kNano);
    work.synchronizes = is_copy_to_host(kernel);
    (work.synchronizes ? work.post_sync : work.pre_launch) = processing;
  }
  return work;
}

// `launch_model` with the values of the keys that `node` has. Throws SpecError.
[[nodiscard]] LaunchModel override_launch_model(const SpecNode& node, LaunchModel launch_model);

}  // namespace tbdsim
