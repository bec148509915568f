// The specifications that requests share, bounded in number.
#pragma once

#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "simulate/prediction/prediction.h"
#include "simulate/workload/spec_cache.h"

namespace tbdsim {

// Returns one cache until it was requested for more than 24 different workloads (model, framework, variant,
// precision and GPU), then an empty one. Requests share the ownership of their cache.
class SpecPool {
 public:
  // Finds the names of the catalogue and, by path, `files` alone.
  SpecPool(const Catalog& catalog, std::vector<std::string> files);

  [[nodiscard]] std::shared_ptr<SpecCache> specs_for(const Scenario& scenario);
  // Finds these files alone from now on; returns the cache that does.
  std::shared_ptr<SpecCache> find_only(std::vector<std::string> files);

 private:
  std::mutex lock_;
  Catalog catalog_;
  std::set<std::string> workloads_;
  std::shared_ptr<SpecCache> specs_;
};

}  // namespace tbdsim
