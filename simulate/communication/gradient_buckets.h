// The gradients that one rank sends together, and when.
//
//   buckets  PyTorch
//            Gradients in the order in which they are ready, until a bucket has `bucket` bytes; 0: each gradient
//            is sent by itself.
//   cycles   Horovod (HOROVOD_CYCLE_TIME, HOROVOD_FUSION_THRESHOLD)
//            A communication thread wakes up every `cycle` and takes up to `bucket` bytes of the gradients
//            announced to it: when their kernels are launched or, for sums in host memory, when they are
//            computed. It then waits until the last of them is computed and starts the next cycle after that:
//            where the CPU is far ahead of the GPU, buckets are few and large
//            (horovod/common/operations.cc: RunLoopOnce, PerformOperation; FuseResponses).
#pragma once

#include <optional>
#include <vector>

#include "graphs/training_step.h"
#include "simulate/communication/sync_plan.h"
#include "simulate/timeline/timeline.h"

namespace tbdsim {

// Gradients that are sent together.
struct GradientBucket {
  double ready = 0;  // seconds from the start of the iteration
  double bytes = 0;
};

class BucketQueue {
 public:
  // `gradient_bytes`: of one element as it is stored.
  BucketQueue(const TrainingStep& step, const Timeline& timeline, double batch, double gradient_bytes,
              const SyncPlan& plan);

  // When the last gradient is computed, in seconds from the start of the iteration; 0 where there is none.
  [[nodiscard]] double computed() const { return computed_; }

  // The next bucket; none after the last. `free`: when the communication thread is done with the one before.
  [[nodiscard]] std::optional<GradientBucket> next(double free);

 private:
  // Times in seconds from the start of the iteration.
  struct Gradient {
    double announced = 0, ready = 0, bytes = 0;
  };
  [[nodiscard]] GradientBucket fill_bucket();
  [[nodiscard]] GradientBucket run_cycle(double free);

  std::vector<Gradient> gradients_;  // by `ready`
  std::size_t next_ = 0;
  double bucket_, first_bucket_;  // bytes
  double cycle_;                  // seconds
  double last_cycle_ = 0;         // start of the last cycle that took gradients
  double computed_ = 0;
};

}  // namespace tbdsim
