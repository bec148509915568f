#include "costmodel/residual_lookup.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>

#include "costmodel/neighbourhood.h"

namespace tbdsim {
namespace {

constexpr std::size_t kNeighbours = kMostNeighbours;
using Rows = Neighbourhood::Rows;

}  // namespace

NearestRows ResidualLookup::Group::nearest(const Features& at, double within) const {
  std::call_once(ready_, [&] {
    std::vector<Features> places;
    for (const ResidualRow& row : rows) places.push_back(row.at);
    boxes_ = RowBoxes(places);
  });
  return boxes_.nearest(at, within);
}

// A thread's: at the most 8,192 neighbourhoods, of two kilobytes each.
class ResidualLookup::LastMet {
 public:
  // The neighbourhood of a point, and its rows' squares of distances.
  const Neighbourhood& around(const Features& at, std::size_t query, const ResidualLookup& lookup,
                              const Group& group, Numbers& squares) {
    NeighbourLine& line = line_of(group.number * kQueries + query);
    const double place = line.place_of(at, group.number);
    const NeighbourLine::Found known = line.around(place);
    double within = std::numeric_limits<double>::infinity();
    if (known.near != nullptr) {
      known.near->squares_to(at, squares);
      if (known.reaches) return *known.near;
      within = most_of(squares);
    }
    const NearestRows nearest = group.nearest(at, within);
    const Neighbourhood& found = of(nearest.rows, lookup, group);
    found.squares_to(at, squares);
    line.learn(place, at, found, squares, nearest.further);
    return found;
  }

 private:
  using Few = std::array<std::unique_ptr<Neighbourhood>, 4>;  // the last first
  static constexpr std::uint64_t kQueries = 1'000;
  static constexpr int kLineBits = 15, kFewBits = 11;

  template <int Bits>
  static std::size_t scattered(std::uint64_t number) {
    return number * 0x9E3779B97F4A7C15 >> (64 - Bits);  // 2^64 over the golden ratio
  }

  NeighbourLine& line_of(std::uint64_t number) {
    auto& line = lines_[scattered<kLineBits>(number)];
    if (!line) line = std::make_unique<NeighbourLine>();
    return *line;
  }

  const Neighbourhood& of(const Rows& rows, const ResidualLookup& lookup, const Group& group) {
    std::uint64_t number = group.number;
    for (const int row : rows) number = number * kQueries + static_cast<std::uint64_t>(row);
    Few& few = met_[scattered<kFewBits>(number)];
    const auto same = [&](const auto& known) {
      return !known || (known->group == group.number && known->rows == rows);
    };
    const auto found = std::find_if(few.begin(), few.end() - 1, same);
    if (!*found) *found = std::make_unique<Neighbourhood>();
    if (!same(*found)) {
      lookup.settle(group, rows, **found);
      (*found)->number = ++settled_;
    }
    std::rotate(few.begin(), found, found + 1);
    return *few[0];
  }

  std::vector<std::unique_ptr<NeighbourLine>> lines_{std::size_t{1} << kLineBits};  // by query
  std::vector<Few> met_{std::size_t{1} << kFewBits};                                // by rows
  std::uint64_t settled_ = 0;
};

ResidualLookup::ResidualLookup(const ResidualTable& table, const Kriging& kriging) : covariance_(kriging) {
  static std::atomic<std::uint64_t> groups = 0;
  const std::span<const ResidualRow> rows = table.rows();
  for (std::size_t begin = 0, end = 0; begin < rows.size(); begin = end) {
    while (end < rows.size() && rows[end].at.group == rows[begin].at.group) ++end;
    groups_.push_back(std::make_unique<const Group>(rows.subspan(begin, end - begin), ++groups));
    ids_.push_back(rows[begin].at.group);
  }
}

const ResidualLookup::Group* ResidualLookup::find(std::uint64_t group) const {
  const auto id = std::lower_bound(ids_.begin(), ids_.end(), group);
  if (id == ids_.end() || *id != group) return nullptr;
  return groups_[static_cast<std::size_t>(id - ids_.begin())].get();
}

void ResidualLookup::settle(const Group& group, const Rows& rows, Neighbourhood& at) const {
  at = {.group = group.number, .rows = rows, .places = {}, .system = {}};
  for (Numbers& places : at.places) places.fill(Doubles{} + std::numeric_limits<double>::infinity());
  const std::size_t count = std::min(group.rows.size(), kNeighbours);
  const auto row = [&](std::size_t j) -> const ResidualRow& {
    return group.rows[static_cast<std::size_t>(rows[j])];
  };
  for (std::size_t j = 0; j < count; ++j) {
    for (std::size_t c = 0; c < Features::kMost; ++c) at.places[c].set(j, row(j).at.x[c]);
  }
  std::array<Numbers, kNeighbours> shared;
  for (std::size_t j = 0; j < count; ++j) at.squares_to(row(j).at, shared[j]);
  covariance_.apply_to_squares(std::span(shared).first(count));
  for (std::size_t j = 0; j < count; ++j) {
    at.system.set_covariance(j, j, covariance_.of_itself());
    at.system.set_value(j, row(j).residual);
    for (std::size_t i = j + 1; i < count; ++i) at.system.set_covariance(i, j, shared[j].at(i));
  }
  at.system.factorize();
}

ResidualEstimate ResidualLookup::estimate(const Group& group, const Features& at, std::size_t query) const {
  static thread_local LastMet last_met;
  Numbers to_point;
  const Neighbourhood& around = last_met.around(at, query, *this, group, to_point);
  const double nearest = std::sqrt(least_of(to_point));
  covariance_.apply_to_squares({&to_point, 1});
  const KrigingSystem::Told told = around.system.about(to_point);
  return {told.mean, covariance_.sd(told.told), nearest};
}

}  // namespace tbdsim
