// The kernels of one training iteration with their cost, and where their times come from.
#pragma once

#include <array>
#include <set>
#include <string>
#include <vector>

#include "hwspecs/base/table.h"
#include "simulate/prediction/prediction.h"

namespace tbdsim {

// Share of the iteration's time from each source, by Provenance; the GPU is idle in the rest.
using ProvenanceShares = std::array<double, kProvenanceNames.size()>;
[[nodiscard]] ProvenanceShares provenance_shares(const Iteration& iteration);

// The lines above a table of kernels: the scenario, and where the kernel times come from.
[[nodiscard]] std::vector<std::string> kernel_preface(const Prediction& prediction);

// Every kernel in the order it runs, its work, time, bound and where the time comes from; totals. With `from`
// only those whose time comes from there; totals are of all.
[[nodiscard]] Table kernel_table(const Prediction& prediction, const std::set<Provenance>& from = {});

// Takes the middle out of long names of layers in what people see, for a terminal's width.
void shorten_layers(Table& table);

}  // namespace tbdsim
