// Keys of a job that are said and change nothing.
#pragma once

#include <string>
#include <vector>

#include "simulate/job/resolve_job.h"

namespace tbdsim {

// A sentence for each key that was said of the job and has no effect on this layout: "prefetch 2
// changes nothing: zero is not 3."
[[nodiscard]] std::vector<std::string> notes_of_idle_keys(const ResolvedJob& job,
                                                          const ParallelLayout& layout);

}  // namespace tbdsim
