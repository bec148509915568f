#include "costmodel/residuals/fast/neighbourhood.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tbdsim {
namespace {

// Rounding, and the ones added to bytes before their logarithm is taken, move calls off their line by less.
constexpr double kOff = 1e-6;

}  // namespace

Neighbourhood::Neighbourhood(std::uint64_t its_group, std::span<const ResidualRow> all, const Rows& its_rows,
                             const Covariance& covariance)
    : group(its_group), rows(its_rows) {
  for (Singles& coordinate : places) coordinate.fill(Floats{} + std::numeric_limits<float>::infinity());
  const auto row = [&](std::size_t i) -> const ResidualRow& {
    return all[static_cast<std::size_t>(rows[i])];
  };
  KrigingSystem system;
  for (std::size_t i = 0; i < std::min(all.size(), kMostNeighbours); ++i) {
    for (std::size_t c = 0; c < Features::kMost; ++c) places[c].set(i, row(i).at.x[c]);
    system.set_value(i, row(i).residual);
    system.set_covariance(i, i, covariance.of_itself());
    for (std::size_t j = 0; j < i; ++j)
      system.set_covariance(i, j, covariance(distance(row(i).at, row(j).at)));
  }
  system.factorize();
  for (std::size_t j = 0; j < kMostNeighbours; ++j) {
    weights.set(j, system.weight(j));
    for (std::size_t i = j; i < kMostNeighbours; ++i)
      inverse_root[in_triangle(i / kFloats, j)][i % kFloats] = static_cast<float>(system.inverse_root(i, j));
  }
}

double NeighbourLine::place_of(const Features& at, std::uint64_t group) {
  const auto count = static_cast<std::size_t>(at.count);
  double place = 0, square = 0;
  for (std::size_t c = 0; c < count; ++c) {
    const double apart = at.x[c] - from_[c];
    place += apart * along_[c];
    square += apart * apart;
  }
  if (group == group_ && square - place * place <= kOff * kOff) return place;
  if (group != group_ || straight_) {
    *this = {};
    group_ = group;
    from_ = at.x;
    return 0;
  }
  straight_ = true;
  const double length = std::sqrt(square);
  for (std::size_t c = 0; c < count; ++c) along_[c] = (at.x[c] - from_[c]) / length;
  return length;
}

NeighbourLine::Found NeighbourLine::around(double place) const {
  const auto ends_before = [](const Stretch& s, double p) { return s.high < p; };
  auto s = std::lower_bound(stretches_.begin(), stretches_.end(), place, ends_before);
  if (s == stretches_.end()) {
    if (stretches_.empty()) return {};
    --s;
  }
  if (s->around->group != group_) return {};
  return {s->around, s->low <= place && place <= s->high && s->around->number == s->number};
}

// After a step s along the line the other rows are at the least n - s away, n^2 = further; a neighbour that
// lay a ahead, at a distance d, is nearer as long as d^2 - 2 a s + s^2 < (n - s)^2. All with room for points
// a little off the line.
NeighbourLine::Reach NeighbourLine::reach(const Features& at, const Neighbourhood& around,
                                          std::span<const ResidualRow> all, double further) const {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  Reach reach{kInfinity, kInfinity};
  if (std::isinf(further)) return reach;  // there is no other row
  const double n = std::sqrt(further) - 4 * kOff;
  for (const int number : around.rows) {
    const Features& row = all[static_cast<std::size_t>(number)].at;
    double ahead = 0, square = 0;
    for (std::size_t c = 0; c < static_cast<std::size_t>(at.count); ++c) {
      ahead += (row.x[c] - at.x[c]) * along_[c];
      square += (row.x[c] - at.x[c]) * (row.x[c] - at.x[c]);
    }
    const double room = n * n - square;
    if (room <= 0) return {0, 0};
    reach.down = std::min(reach.down, room / (2 * (n + ahead)));
    reach.up = std::min(reach.up, room / (2 * (n - ahead)));
  }
  return reach;
}

void NeighbourLine::learn(double place, const Features& at, const Neighbourhood& around,
                          std::span<const ResidualRow> all, double further) {
  const auto [down, up] = reach(at, around, all, further);
  if (down <= 0 || up <= 0) return;
  Stretch learnt{place, place, &around, around.number};
  if (straight_) {
    learnt.low -= down;
    learnt.high += up;
  }
  // Others that it goes into are of what was forgotten since.
  std::erase_if(stretches_, [&](const Stretch& s) {
    if (s.number != learnt.number) return s.low <= learnt.high && s.high >= learnt.low;
    learnt.low = std::min(learnt.low, s.low);
    learnt.high = std::max(learnt.high, s.high);
    return true;
  });
  const auto after = [&](const Stretch& s) { return s.low > learnt.high; };
  stretches_.insert(std::find_if(stretches_.begin(), stretches_.end(), after), learnt);
}

}  // namespace tbdsim
