// A request of the live page: one scenario on hardware with changed numbers, given as parameters of a URL's
// query.
//
//   model, framework, variant, gpu, precision, batch   as the options of the command line
//   set        "gpu.memory_bandwidth=800 GB/s" as whatif's, of the GPU or its links; may come several times
//   gpus       GPUs in each machine, 1 if absent
//   machines   1 if absent
//   network    between machines: a link of the catalogue or a rate, "25 Gbit/s"
//   kernels    1: the answer includes every kernel, ten times as much text
#pragma once

#include "simulate/prediction/prediction.h"
#include "simulate/serve/request_target.h"

namespace tbdsim {

struct LiveQuery {
  Scenario scenario;
  SpecChanges changes;
  bool kernels = false;
};

// Parameters that are absent are as in `usual`, a scenario of one GPU. Throws UsageError for an unknown or
// repeated key, a number out of range, a change of anything but hardware, or more than 16 changes.
[[nodiscard]] LiveQuery read_query(const QueryParameters& parameters, const Scenario& usual);

}  // namespace tbdsim
