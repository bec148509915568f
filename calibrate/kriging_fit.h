// Chooses amplitude, length and nugget of a residual table by leaving one row out at a time.
#pragma once

#include "costmodel/residual_table.h"

namespace tbdsim {

// The amplitude is the rows' own spread (outliers clipped at three robust deviations); length and nugget are
// those of a fixed grid with the least mean |residual - estimate|.
[[nodiscard]] Kriging fit_kriging(const ResidualTable& table);

}  // namespace tbdsim
