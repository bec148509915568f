#include "simulate/communication/gradient_buckets.h"

#include <algorithm>
#include <cmath>

namespace tbdsim {

BucketQueue::BucketQueue(const TrainingStep& step, const Timeline& timeline, double batch,
                         double gradient_bytes, const SyncPlan& exchange)
    : bucket_(exchange.bucket.si()),
      first_bucket_(exchange.first_bucket.si()),
      cycle_(exchange.cycle.si()),
      last_look_(-cycle_) {
  const bool on_gpu = !exchange.stages.empty() && exchange.stages.front().on_gpu;
  for (const ParameterGradient& gradient : step.gradients) {
    const KernelSpan& span = timeline.kernels[static_cast<std::size_t>(gradient.ready)];
    const double bytes = gradient.elements.at(batch) * gradient_bytes * static_cast<double>(gradient.repeat);
    computed_ = std::max(computed_, span.end.si());
    if (bytes > 0) gradients_.push_back({on_gpu ? span.issued.si() : span.end.si(), span.end.si(), bytes});
  }
  // Of two chains side by side some of the second come before those of the first.
  const auto earlier = [](const Gradient& a, const Gradient& b) { return a.ready < b.ready; };
  if (!std::is_sorted(gradients_.begin(), gradients_.end(), earlier))
    std::stable_sort(gradients_.begin(), gradients_.end(), earlier);
}

std::optional<Message> BucketQueue::next(double free) {
  if (next_ == gradients_.size()) return std::nullopt;
  return cycle_ > 0 ? cycle(free) : bucket();
}

Message BucketQueue::bucket() {
  const double full = next_ == 0 ? first_bucket_ : bucket_;
  Message message;
  while (next_ < gradients_.size()) {
    message.bytes += gradients_[next_].bytes;
    message.ready = gradients_[next_++].ready;
    if (message.bytes >= full) break;
  }
  return message;
}

Message BucketQueue::cycle(double free) {
  double look = std::max(free, last_look_ + cycle_);
  const double known = gradients_[next_].known;
  if (known > look) look += std::ceil((known - look) / cycle_) * cycle_;
  last_look_ = look;
  Message message{.ready = look};
  while (next_ < gradients_.size() && gradients_[next_].known <= look) {
    const Gradient& gradient = gradients_[next_];
    if (message.bytes > 0 && message.bytes + gradient.bytes > bucket_) break;
    message.bytes += gradient.bytes;
    message.ready = std::max(message.ready, gradient.ready);
    ++next_;
  }
  return message;
}

}  // namespace tbdsim
