// Chooses the kriging parameters of residuals by leave-one-out errors on a fixed grid.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "costmodel/residuals/residual_table.h"

namespace tbdsim {

// Kriging parameters for calls of the same GPU: leaves one row out at a time. The amplitude is the rows' own
// spread (outliers clipped at three robust deviations); length and nugget are those of a fixed grid with the
// least mean |residual - estimate|.
[[nodiscard]] Kriging fit_kriging(const ResidualTable& table);

// Kriging parameters for calls of another GPU: leaves all rows of one GPU out at a time and estimates them
// from the other GPUs' rows. The median error of a GPU, which its clock explains, is subtracted. Also chooses
// `repeat`, the part of the nugget that the same call on another GPU does not share. `cards`: rows by GPU.
// With fewer than four GPUs, where an outlier cannot be identified: fit_kriging of the medians over them.
[[nodiscard]] Kriging fit_kriging_between(const std::map<std::string, std::vector<ResidualRow>>& cards);

}  // namespace tbdsim
