// Runs a sweep on every core, and on every rank that a launcher started.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "simulate/sweep/choosing.h"
#include "simulate/workload/spec_cache.h"

namespace tbdsim {

struct SweepRun {
  Sweep sweep;
  Choosing choosing;
  RowFormat format = RowFormat::csv;
  std::int64_t first = 0, end = 0;  // points

  // Called with the rows of points in their order, about a thousand at a time; on the first rank only. May
  // throw to stop the sweep.
  std::function<void(std::vector<SweepRow> rows, std::int64_t first)> take;
};

// Part `index`, from 1, of `count` equal parts: "1/4".
struct Shard {
  std::int64_t index = 1, count = 1;
};
[[nodiscard]] Shard parse_shard(const std::string& text);  // throws UsageError
// Limits first and end to the shard's points.
void limit_to(const Shard& shard, SweepRun& run);

void run_sweep(const SweepRun& run, SpecCache& specs);

}  // namespace tbdsim
