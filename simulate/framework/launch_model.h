// How a framework's CPU side drives the GPU: what issuing work costs, and where it waits for results. Part of
// a framework file; at most four of the times are fitted to training runs of a version, the others are
// estimates or published (its sources say which).
#pragma once

#include "costmodel/estimate.h"
#include "graphs/kernel.h"
#include "hwspecs/base/quantity.h"
#include "hwspecs/base/sources.h"

namespace tbdsim {

struct LaunchModel {
  // CPU time of the thread that issues work.
  Seconds kernel{};  // for a kernel or a copy
  Seconds step{};    // for one in a step of a recurrence, instead: loops that the framework runs; 0: as any
  Seconds update{};  // for a kernel that updates a parameter, instead: keys, engine, Python
  Seconds wait{};    // each time it waits for the GPU: until it goes on after the last result is there
  Seconds iteration{};  // once an iteration: a session's call, feeds and fetches, the training script
  // GPU time.
  Seconds latency{};  // from the end of issuing a kernel to its start on an idle GPU
  Seconds gap{};      // between kernels that were issued in time
  // Where the thread waits until the GPU has done all that was issued; it always does for a copy to the host.
  std::int64_t segment = 0;  // after so many kernels; 0: not for that
  bool after_update = false;
  // Threads, each with a stream of its own, that take segments and updates in turn: one, or two. See
  // update_workers.h.
  std::int64_t workers = 1;
  bool after_iteration = true;
  std::int64_t queue = 1'024;  // kernels issued and not yet done, at the most
  // Threads that read and decode samples beside; 0: samples are made up on the GPU.
  int input_threads = 0;
  Sources sources{};  // of the times and threads given
};

// What the thread does for a kernel each time it runs: what is sent is made before it is issued, what is
// copied to the host is worked on after the wait for it.
struct HostWork {
  Seconds before, issue, after;
  bool waits = false;  // for the GPU, between issue and `after`
};
[[nodiscard]] inline HostWork thread_work(const Kernel& kernel, double batch, const LaunchModel& execution) {
  constexpr double kNanosecond = 1e-9;
  Seconds host;  // of copies only
  if (kernel.kind == KernelKind::transfer) host = Seconds(kernel.host_nanoseconds.at(batch) * kNanosecond);
  Seconds issue = kernel.repeat > 1 && execution.step.si() > 0 ? execution.step : execution.kernel;
  if (kernel.kind == KernelKind::update) issue = execution.update;
  if (is_copy_to_host(kernel)) return {.before = {}, .issue = issue, .after = host, .waits = true};
  const bool waits = kernel.kind == KernelKind::update && execution.after_update;
  return {.before = host, .issue = issue, .after = {}, .waits = waits};
}
// Most are: their work is issue = execution.kernel alone.
[[nodiscard]] inline bool is_plain(const Kernel& kernel) {
  return kernel.repeat == 1 && kernel.kind != KernelKind::transfer && kernel.kind != KernelKind::update;
}

// The keys that `node` has replace those given. Throw SpecError.
[[nodiscard]] LaunchModel override_execution(const SpecNode& node, LaunchModel execution);

}  // namespace tbdsim
