// The answer of `tbd-sim serve` to a query, from which the open page updates itself.
#pragma once

#include <string>

#include "simulate/prediction/prediction.h"
#include "simulate/serve/live_query.h"
#include "simulate/workload/spec_cache.h"

namespace tbdsim {

// A JSON object:
//   title, command    of the scenario; what is typed to get the same numbers
//   tiles             [{"name": metric, "text": value with its unit, "change": against unchanged hardware, "note",
//                     "wrong": true if it does not fit into memory}]
//   kernel_times      where the times of kernels come from
//   html, charts      the sections of the page, and the charts of their figures in order
// Throws as predict().
[[nodiscard]] std::string live_report(const LiveQuery& query, SpecCache& specs);

}  // namespace tbdsim
