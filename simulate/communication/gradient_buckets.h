// What one rank sends, and when.
//
//   buckets   gradients in the order in which they are ready, until there are `bucket` bytes of them
//   (PyTorch;
//             0: each by itself)
//   cycles    a thread of its own looks every `cycle` for gradients it was told of and takes up to `bucket`
//             bytes of them (Horovod: HOROVOD_CYCLE_TIME, HOROVOD_FUSION_THRESHOLD). It is told as their
//             kernels are issued, of those summed in host memory as they are there. It then waits until the
//             last of them is computed, which delays what it takes next: where the CPU is far ahead of the
//             GPU messages are few and large
//             (horovod/common/operations.cc: RunLoopOnce, PerformOperation; FuseResponses)
#pragma once

#include <optional>
#include <vector>

#include "graphs/training_step.h"
#include "simulate/communication/sync_plan.h"
#include "simulate/timeline/timeline.h"

namespace tbdsim {

struct Message {
  double ready = 0;  // seconds from the start of the iteration
  double bytes = 0;
};

class BucketQueue {
 public:
  // `gradient_bytes`: of one element as it is sent.
  BucketQueue(const TrainingStep& step, const Timeline& timeline, double batch, double gradient_bytes,
              const SyncPlan& exchange);

  // When the last gradient is computed; 0 where there is none.
  [[nodiscard]] double computed() const { return computed_; }

  // None after the last. `free`: when the thread that sends is done with the message before.
  [[nodiscard]] std::optional<Message> next(double free);

 private:
  struct Gradient {
    double known = 0, ready = 0, bytes = 0;
  };
  [[nodiscard]] Message bucket();
  [[nodiscard]] Message cycle(double free);

  std::vector<Gradient> gradients_;
  std::size_t next_ = 0;
  double bucket_, first_bucket_, cycle_;
  double last_look_ = 0;
  double computed_ = 0;
};

}  // namespace tbdsim
