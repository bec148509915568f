#include "simulate/sweep/sweep.h"

namespace tbdsim {

std::int64_t points_of(const Sweep& sweep) {
  std::int64_t points = 1;
  for (const SweepAxis& axis : sweep.axes) points *= static_cast<std::int64_t>(axis.size());
  return points;
}

std::vector<std::string> values_at(const Sweep& sweep, std::int64_t point) {
  std::vector<std::string> values(sweep.axes.size());
  for (std::size_t a = values.size(); a-- > 0;) {
    const auto size = static_cast<std::int64_t>(sweep.axes[a].size());
    values[a] = sweep.axes[a].value(point % size);
    point /= size;
  }
  return values;
}

}  // namespace tbdsim
