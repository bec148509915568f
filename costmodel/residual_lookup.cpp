#include "costmodel/residual_lookup.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>

namespace tbdsim {
namespace {

constexpr std::size_t kNeighbours = kMostNeighbours;
using Rows = std::array<int, kNeighbours>;

double most_of(const Numbers& numbers) {
  Doubles most = numbers[0];
  for (const Doubles& others : numbers) most = most > others ? most : others;
  return std::max(std::max(most[0], most[1]), std::max(most[2], most[3]));
}

double least_of(const Numbers& numbers) {
  Doubles least = numbers[0];
  for (const Doubles& others : numbers) least = least < others ? least : others;
  return std::min(std::min(least[0], least[1]), std::min(least[2], least[3]));
}

Rows nearest_rows(const RowBoxes& boxes, const Features& at) {
  const Rows found = boxes.nearest(at).rows;
  Rows rows;  // by how many are before each: sooner than comparisons whose outcome nobody foresees
  for (const int row : found) {
    std::size_t before = 0;
    for (const int other : found) before += other < row ? 1U : 0U;
    rows[before] = row;
  }
  return rows;
}

}  // namespace

// Rows that are the neighbours of some points, and what they tell of any.
struct ResidualLookup::Neighbourhood {
  std::uint64_t group = 0;                        // its number
  Rows rows{};                                    // ascending; further ones are infinitely far
  std::array<Numbers, Features::kMost> places{};  // by coordinate
  KrigingSystem system;

  // Of distances. Not returned: a compiler for narrow vectors may align a result too little for wide ones.
  void squares_to(const Features& at, Numbers& squares) const;
};

TBDSIM_WIDE_VECTORS void ResidualLookup::Neighbourhood::squares_to(const Features& at,
                                                                   Numbers& squares) const {
  squares = {};
  for (std::size_t c = 0; c < static_cast<std::size_t>(at.count); ++c) {
    for (std::size_t v = 0; v < squares.size(); ++v)
      squares[v] += (places[c][v] - at.x[c]) * (places[c][v] - at.x[c]);
  }
}

// A thread's: at the most 8,192, of two kilobytes each.
class ResidualLookup::LastMet {
 public:
  // The neighbourhood of a point, and its rows' squares of distances. Most often that of the query before.
  const Neighbourhood& around(const Features& at, std::size_t query, const ResidualLookup& lookup,
                              const Group& group, Numbers& squares) {
    const Neighbourhood*& last = last_[scattered<kQueryBits>(group.number * kQueries + query)];
    if (last != nullptr && last->group == group.number) {
      last->squares_to(at, squares);
      const bool all = group.rows.size() <= kNeighbours;
      if (all || group.boxes.count_within(most_of(squares), at) == kNeighbours) return *last;
    }
    // Where there are ties, the rows say more than distances do.
    last = &of(nearest_rows(group.boxes, at), lookup, group);
    last->squares_to(at, squares);
    return *last;
  }

 private:
  using Few = std::array<std::unique_ptr<Neighbourhood>, 4>;  // the last first
  static constexpr std::uint64_t kQueries = 1'000;
  static constexpr int kQueryBits = 13, kFewBits = 11;

  template <int Bits>
  static std::size_t scattered(std::uint64_t number) {
    return number * 0x9E3779B97F4A7C15 >> (64 - Bits);  // 2^64 over the golden ratio
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
    if (!same(*found)) lookup.settle(group, rows, **found);
    std::rotate(few.begin(), found, found + 1);
    return *few[0];
  }

  std::vector<const Neighbourhood*> last_ =
      std::vector<const Neighbourhood*>(std::size_t{1} << kQueryBits);   // by query; may be another's by now
  std::vector<Few> met_ = std::vector<Few>(std::size_t{1} << kFewBits);  // by rows
};

ResidualLookup::ResidualLookup(const ResidualTable& table, const Kriging& kriging) : covariance_(kriging) {
  static std::atomic<std::uint64_t> groups = 0;
  const std::span<const ResidualRow> rows = table.rows();
  for (std::size_t begin = 0, end = 0; begin < rows.size(); begin = end) {
    while (end < rows.size() && rows[end].at.group == rows[begin].at.group) ++end;
    Group& group = groups_.emplace_back();
    group.rows = rows.subspan(begin, end - begin);
    group.number = ++groups;
    ids_.push_back(rows[begin].at.group);
  }
}

const ResidualLookup::Group* ResidualLookup::group_at(const Features& at) const {
  const auto id = std::lower_bound(ids_.begin(), ids_.end(), at.group);
  if (id == ids_.end() || *id != at.group) return nullptr;
  const Group& group = groups_[static_cast<std::size_t>(id - ids_.begin())];
  std::call_once(group.ready, [&] {
    std::vector<Features> places;
    for (const ResidualRow& row : group.rows) places.push_back(row.at);
    group.boxes = RowBoxes(places);
  });
  return &group;
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

ResidualEstimate ResidualLookup::estimate(const Features& at, std::size_t query) const {
  static thread_local LastMet last_met;
  const Group* group = group_at(at);
  if (group == nullptr) return {0, sd_alone(), std::numeric_limits<double>::infinity()};
  Numbers to_point;
  const Neighbourhood& around = last_met.around(at, query, *this, *group, to_point);
  const double nearest = std::sqrt(least_of(to_point));
  covariance_.apply_to_squares({&to_point, 1});
  const KrigingSystem::Told told = around.system.about(to_point);
  return {told.mean, covariance_.sd(told.told), nearest};
}

}  // namespace tbdsim
