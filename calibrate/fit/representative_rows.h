// Selects the measured calls that a residual table keeps.
#pragma once

#include <vector>

#include "costmodel/residuals/residual_table.h"

namespace tbdsim {

// Indices of at most `most` rows, spread over sizes and residuals: each next one is the farthest from those
// taken (in sizes, and in residuals counted in `nugget`s), beginning with the group's largest residual.
[[nodiscard]] std::vector<std::size_t> representative_rows(const std::vector<ResidualRow>& rows,
                                                           double nugget, std::size_t most);

}  // namespace tbdsim
