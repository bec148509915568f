// The specifications that requests share, bounded in number.
#pragma once

#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "simulate/prediction/prediction.h"
#include "simulate/workload/spec_cache.h"

namespace tbdsim {

// Returns one cache until it was requested for more than 24 different workloads (model, framework, variant,
// precision and GPU), then an empty one. Requests share the ownership of their cache.
class SpecPool {
 public:
  explicit SpecPool(Catalog catalog);

  [[nodiscard]] std::shared_ptr<SpecCache> specs_for(const Scenario& scenario);

 private:
  Catalog catalog_;
  std::mutex lock_;
  std::set<std::string> workloads_;
  std::shared_ptr<SpecCache> specs_;
};

}  // namespace tbdsim
