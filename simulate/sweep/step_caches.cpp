#include "simulate/sweep/step_caches.h"

namespace tbdsim {

std::shared_ptr<SpecCache> StepCaches::of(const std::string& model) {
  const std::scoped_lock held(lock_);
  std::weak_ptr<SpecCache>& kept = caches_[model];
  std::shared_ptr<SpecCache> cache = kept.lock();
  if (!cache) {
    cache = std::make_shared<SpecCache>(specs_, SpecCache::OwnSteps{});
    kept = cache;
  }
  return cache;
}

}  // namespace tbdsim
