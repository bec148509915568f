// What `tbd-sim serve` answers: the report of one scenario on hardware whose numbers are turned, as the page
// that is open takes it.
//
//   model, framework, variant, gpu, precision, batch   as the options of the command line
//   set                  "gpu.memory_bandwidth=800 GB/s", as whatif's; of the GPU and its links, several
//   gpus, machines       GPUs in each machine, machines; 1 unless said
//   network              between machines: a link of the catalogue or a rate, "25 Gbit/s"
//   kernels              1: also every kernel (ten times as much text)
#pragma once

#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>

#include "simulate/prediction/prediction.h"
#include "simulate/serve/request_target.h"

namespace tbdsim {

struct LiveQuery {
  Scenario scenario;
  SpecChanges changes;
  bool kernels = false;
};

// What is not said is as in `usual`, which is of one GPU and has no more than those keys say. Throws
// UsageError: a key that is not one of those above or is there twice, a number out of range, a change of what
// is no hardware, too many of them.
[[nodiscard]] LiveQuery read_query(const QueryParameters& parameters, const Scenario& usual);

// JSON: {"title", "tiles": [{"name", "text", "change", "note", "wrong": it does not fit}], "command",
// "kernel_times", "html", "charts"}. Throws as predict().
[[nodiscard]] std::string live_report(const LiveQuery& query, SpecCache& specs);

// A library that is as large as many different questions make it, and no larger: then a new one follows.
class SpecPool {
 public:
  explicit SpecPool(Catalog catalog);

  // That in which the scenario's kernels are, or are to be.
  [[nodiscard]] std::shared_ptr<SpecCache> specs_for(const Scenario& scenario);

 private:
  Catalog catalog_;
  std::mutex lock_;
  std::set<std::string> workloads_;
  std::shared_ptr<SpecCache> specs_;
};

}  // namespace tbdsim
