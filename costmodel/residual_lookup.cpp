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
  Rows rows = boxes.nearest(at).rows;
  std::sort(rows.begin(), rows.end());
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

// A thread's: at the most four for each of 2,048 queries, of two kilobytes each.
class ResidualLookup::LastMet {
 public:
  // The neighbourhood of a point, and its rows' squares of distances.
  const Neighbourhood& around(const Features& at, std::size_t query, const ResidualLookup& lookup,
                              const Group& group, Numbers& squares) {
    Few& few = of(group.number, query);
    for (std::size_t i = 0; i < few.size() && few[i]; ++i) {
      if (few[i]->group != group.number) continue;
      few[i]->squares_to(at, squares);
      const bool all = group.rows.size() <= kNeighbours;
      if (all || group.boxes.count_within(most_of(squares), at) == kNeighbours) return first(few, i);
    }
    const Rows rows = nearest_rows(group.boxes, at);
    std::size_t i = 0;  // where there are ties, the rows say more than distances do
    while (i + 1 < few.size() && few[i] && (few[i]->group != group.number || few[i]->rows != rows)) ++i;
    if (!few[i]) few[i] = std::make_unique<Neighbourhood>();
    if (few[i]->group != group.number || few[i]->rows != rows) lookup.settle(group, rows, *few[i]);
    few[i]->squares_to(at, squares);
    return first(few, i);
  }

 private:
  using Few = std::array<std::unique_ptr<Neighbourhood>, 4>;  // the last first

  static const Neighbourhood& first(Few& few, std::size_t i) {
    for (; i > 0; --i) std::swap(few[i], few[i - 1]);
    return *few[0];
  }
  Few& of(std::uint64_t group, std::size_t query) {
    constexpr std::uint64_t kQueries = 1'000, kScatter = 0x9E3779B97F4A7C15;  // 2^64 over the golden ratio
    return all_[(group * kQueries + query) * kScatter >> (64 - kBits)];
  }

  static constexpr std::size_t kBits = 11;
  std::vector<Few> all_ = std::vector<Few>(std::size_t{1} << kBits);
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

void ResidualLookup::estimate(std::span<const Query> queries, std::span<ResidualEstimate> found) {
  for (std::size_t q = 0; q < queries.size(); ++q) found[q] = queries[q].lookup->estimate(queries[q].at, q);
}

}  // namespace tbdsim
