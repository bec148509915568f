// Chooses the kriging parameters of residuals by leave-one-out errors on a fixed grid.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "costmodel/residuals/residual_table.h"

namespace tbdsim {

// For calls of the same GPU: leaves one row out at a time. The amplitude is the rows' own spread (outliers
// clipped at three robust deviations); length and nugget are those of a fixed grid with the least mean
// |residual - estimate|.
[[nodiscard]] Kriging fit_kriging(const ResidualTable& table);

// For calls of another GPU: leaves a whole card out at a time and estimates its rows from the others'; a
// card's own median, which is its clock's, does not count. Chooses also how much of the nugget the same call
// on another card shares, and how much of the amplitude is worth transferring. `cards`: the rows of each.
// Fewer than four cards: fit_kriging of their medians, because an odd one cannot be told from the others.
[[nodiscard]] Kriging fit_kriging_between(const std::map<std::string, std::vector<ResidualRow>>& cards);

}  // namespace tbdsim
