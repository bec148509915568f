#include "simulate/communication/gradient_buckets.h"

#include <algorithm>
#include <cmath>

#include "simulate/communication/table_exchange.h"

namespace tbdsim {

BucketQueue::BucketQueue(const TrainingStep& step, const Timeline& timeline, double batch,
                         double gradient_bytes, const SyncPlan& plan)
    : bucket_(plan.bucket.si()),
      first_bucket_(plan.first_bucket.si()),
      cycle_(plan.cycle.si()),
      last_cycle_(-cycle_) {
  const bool on_gpu = !plan.stages.empty() && plan.stages.front().on_gpu;
  for (const ParameterGradient& gradient : step.gradients) {
    const KernelSpan& span = timeline.kernels[static_cast<std::size_t>(gradient.ready)];
    const double bytes = gradient.elements.at(batch) * gradient_bytes * static_cast<double>(gradient.repeat);
    const double ready = span.end.si();
    const double announced = on_gpu ? span.launch_end.si() : ready;
    computed_ = std::max(computed_, ready);
    if (bytes > 0 && !is_of_shared_layer(step, gradient, plan))
      gradients_.push_back({announced, ready, bytes});
  }
  // Gradients of several batches are exchanged in the last of them, whose kernels take their part of those
  // that are repeated for all.
  for (Gradient& gradient : gradients_) {
    for (double* at : {&gradient.announced, &gradient.ready})
      *at = computed_ - (computed_ - *at) / static_cast<double>(step.batches);
  }
  // Where two chains of kernels run concurrently, gradients of the second may be ready before some of the
  // first.
  const auto earlier = [](const Gradient& a, const Gradient& b) { return a.ready < b.ready; };
  if (!std::is_sorted(gradients_.begin(), gradients_.end(), earlier))
    std::stable_sort(gradients_.begin(), gradients_.end(), earlier);
}

std::optional<GradientBucket> BucketQueue::next(double free) {
  if (next_ == gradients_.size()) return std::nullopt;
  return cycle_ > 0 ? run_cycle(free) : fill_bucket();
}

GradientBucket BucketQueue::fill_bucket() {
  const double full = next_ == 0 ? first_bucket_ : bucket_;
  GradientBucket bucket;
  while (next_ < gradients_.size()) {
    bucket.bytes += gradients_[next_].bytes;
    bucket.ready = gradients_[next_].ready;
    ++next_;
    if (bucket.bytes >= full) break;
  }
  return bucket;
}

GradientBucket BucketQueue::run_cycle(double free) {
  double start = std::max(free, last_cycle_ + cycle_);
  const double announced = gradients_[next_].announced;
  if (announced > start) start += std::ceil((announced - start) / cycle_) * cycle_;
  last_cycle_ = start;
  GradientBucket bucket{.ready = start};
  while (next_ < gradients_.size() && gradients_[next_].announced <= start) {
    const Gradient& gradient = gradients_[next_];
    if (bucket.bytes > 0 && bucket.bytes + gradient.bytes > bucket_) break;
    bucket.bytes += gradient.bytes;
    bucket.ready = std::max(bucket.ready, gradient.ready);
    ++next_;
  }
  return bucket;
}

}  // namespace tbdsim
