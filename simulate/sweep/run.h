// Runs a sweep on every core, and on every rank that a launcher started.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "simulate/sweep/rows.h"

namespace tbdsim {

struct SweepRun {
  Sweep sweep;
  Choosing choosing;
  RowFormat format = RowFormat::csv;
  std::int64_t first = 0, end = 0;  // points

  // Gets the rows of points in their order, a thousand at a time; on the first rank only. May throw to stop.
  std::function<void(std::vector<SweepRow> rows, std::int64_t first)> take;
};

// The part `index` (from 1) of `count` equal ones: "1/4".
struct Shard {
  std::int64_t index = 1, count = 1;
};
[[nodiscard]] Shard parse_shard(const std::string& text);  // throws UsageError
void limit_to(const Shard& shard, SweepRun& run);          // cuts first and end

void run_sweep(const SweepRun& run, SpecCache& specs);

}  // namespace tbdsim
