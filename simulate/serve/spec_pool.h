// The specifications that requests share, bounded in number.
#pragma once

#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "simulate/prediction/prediction.h"
#include "simulate/workload/spec_cache.h"

namespace tbdsim {

// Hands out one cache until scenarios of more than 24 different workloads (model, framework, variant,
// precision and GPU) have asked for it, then an empty one. A cache lives as long as a request holds it.
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
