#include "simulate/serve/spec_pool.h"

namespace tbdsim {
namespace {

constexpr std::size_t kMostWorkloads = 24;

}  // namespace

SpecPool::SpecPool(const Catalog& catalog, std::vector<std::string> files)
    : catalog_(catalog.with_files_only(std::move(files))), specs_(std::make_shared<SpecCache>(catalog_)) {}

std::shared_ptr<SpecCache> SpecPool::specs_for(const Scenario& s) {
  const std::scoped_lock held(lock_);
  workloads_.insert(s.model + '\n' + s.framework + '\n' + s.variant + '\n' + s.precision + '\n' + s.gpu);
  if (workloads_.size() > kMostWorkloads) {
    workloads_.clear();
    specs_ = std::make_shared<SpecCache>(catalog_);
  }
  return specs_;
}

std::shared_ptr<SpecCache> SpecPool::find_only(std::vector<std::string> files) {
  const std::scoped_lock held(lock_);
  catalog_ = catalog_.with_files_only(std::move(files));
  workloads_.clear();
  specs_ = std::make_shared<SpecCache>(catalog_);
  return specs_;
}

}  // namespace tbdsim
