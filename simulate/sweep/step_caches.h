// Training steps of the models that threads of a sweep are at. Those of a model are dropped when the last
// thread has left it: models follow one another, and the steps of all of them would be gigabytes.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "simulate/workload/spec_cache.h"

namespace tbdsim {

class StepCaches {
 public:
  // `specs` must outlive it and what it returns.
  explicit StepCaches(SpecCache& specs) : specs_(specs) {}

  // A cache that keeps this model's steps while somebody holds it. Thread-safe.
  [[nodiscard]] std::shared_ptr<SpecCache> of(const std::string& model);

 private:
  SpecCache& specs_;
  std::mutex lock_;
  std::map<std::string, std::weak_ptr<SpecCache>> caches_;
};

}  // namespace tbdsim
