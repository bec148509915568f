// The page of layouts of `tbd-sim serve`: its lists and sliders, and the answer to a query, from which the
// open page updates itself.
#pragma once

#include <string>

#include "simulate/job/job_request.h"
#include "simulate/serve/request_target.h"
#include "simulate/workload/spec_cache.h"

namespace tbdsim {

// The job with which the page begins.
[[nodiscard]] JobRequest usual_job();

// The job of a query: keys of set_job(), each at most once; those that are absent are as in usual_job().
// Throws UsageError.
[[nodiscard]] JobRequest read_job_query(const QueryParameters& parameters);

// The lists and the values of the sliders of assets/layouts.js, as JSON.
[[nodiscard]] std::string layout_controls();

// A JSON object:
//   title, command    of the job; what is typed to get the same numbers
//   layout            the layout shown by key, also where it was searched because the query has none
//   tiles             [{"name", "text", "note", "wrong": true if it does not fit into memory}]
//   html, charts      the sections of the page, and the charts of their figures in order
// Throws as resolve_job().
[[nodiscard]] std::string layout_report(const JobRequest& request, SpecCache& specs);

}  // namespace tbdsim
