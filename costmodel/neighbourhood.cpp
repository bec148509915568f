#include "costmodel/neighbourhood.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tbdsim {
namespace {

// Rounding, and the ones added to bytes before their logarithm is taken, move calls off their line by less.
constexpr double kOff = 1e-6;

}  // namespace

TBDSIM_WIDE_VECTORS void Neighbourhood::squares_to(const Features& at, Numbers& squares) const {
  squares = {};
  for (std::size_t c = 0; c < static_cast<std::size_t>(at.count); ++c) {
    for (std::size_t v = 0; v < squares.size(); ++v)
      squares[v] += (places[c][v] - at.x[c]) * (places[c][v] - at.x[c]);
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
TBDSIM_WIDE_VECTORS NeighbourLine::Reach NeighbourLine::reach(const Features& at, const Neighbourhood& around,
                                                              const Numbers& squares, double further) const {
  if (std::isinf(further)) return {further, further};  // there is no other row
  const double n = std::sqrt(further) - 4 * kOff;
  Numbers ahead{}, room, down, up;
  for (std::size_t c = 0; c < static_cast<std::size_t>(at.count); ++c) {
    for (std::size_t v = 0; v < ahead.size(); ++v) ahead[v] += (around.places[c][v] - at.x[c]) * along_[c];
  }
  for (std::size_t v = 0; v < ahead.size(); ++v) {
    room[v] = n * n - squares[v];
    down[v] = room[v] / (2 * (n + ahead[v]));
    up[v] = room[v] / (2 * (n - ahead[v]));
  }
  if (least_of(room) <= 0) return {0, 0};
  return {least_of(down), least_of(up)};
}

void NeighbourLine::learn(double place, const Features& at, const Neighbourhood& around,
                          const Numbers& squares, double further) {
  if (!straight_) return;
  const auto [down, up] = reach(at, around, squares, further);
  if (down <= 0 || up <= 0) return;
  Stretch learnt{place - down, place + up, &around, around.number};
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
