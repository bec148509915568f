#include "calibrate/fit/representative_rows.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

namespace tbdsim {
namespace {

double apart(const ResidualRow& a, const ResidualRow& b, double nugget) {
  return std::hypot(distance(a.at, b.at), (a.residual - b.residual) / nugget);
}

// The farthest-point order of one group.
std::vector<std::size_t> ordered(const std::vector<ResidualRow>& rows, const std::vector<std::size_t>& group,
                                 double nugget, std::size_t most) {
  std::vector<double> nearest(group.size(), std::numeric_limits<double>::infinity());
  std::size_t next = 0;
  for (std::size_t i = 1; i < group.size(); ++i) {
    if (std::abs(rows[group[i]].residual) > std::abs(rows[group[next]].residual)) next = i;
  }
  std::vector<std::size_t> taken;
  while (taken.size() < std::min(most, group.size())) {
    taken.push_back(group[next]);
    nearest[next] = -1;
    for (std::size_t i = 0; i < group.size(); ++i) {
      if (nearest[i] >= 0)
        nearest[i] = std::min(nearest[i], apart(rows[group[i]], rows[taken.back()], nugget));
    }
    next = static_cast<std::size_t>(std::max_element(nearest.begin(), nearest.end()) - nearest.begin());
  }
  return taken;
}

}  // namespace

std::vector<std::size_t> representative_rows(const std::vector<ResidualRow>& rows, double nugget,
                                             std::size_t most) {
  std::map<std::uint64_t, std::vector<std::size_t>> groups;
  for (std::size_t i = 0; i < rows.size(); ++i) groups[rows[i].at.group].push_back(i);
  std::vector<std::size_t> kept;
  for (const auto& [group, members] : groups) {
    // In proportion, at least one each.
    const std::size_t share =
        std::max<std::size_t>(1, most * members.size() / std::max<std::size_t>(1, rows.size()));
    for (const std::size_t row : ordered(rows, members, std::max(nugget, 1e-3), share)) kept.push_back(row);
  }
  std::sort(kept.begin(), kept.end());
  if (kept.size() > most) kept.resize(most);
  return kept;
}

}  // namespace tbdsim
