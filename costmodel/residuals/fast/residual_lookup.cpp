#include "costmodel/residuals/fast/residual_lookup.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>

#include "costmodel/residuals/fast/neighbourhood.h"

namespace tbdsim {
namespace {

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

// A thread's: at the most 16,384 neighbourhoods, of one kilobyte each.
class ResidualLookup::LastMet {
 public:
  // The neighbourhood of a point.
  const Neighbourhood& around(const Features& at, std::size_t query, const ResidualLookup& lookup,
                              const Group& group) {
    const std::uint64_t number = group.number << kQueryBits | query;
    Query& asked = before_->next->number == number ? *before_->next : query_of(number);
    before_->next = &asked;
    before_ = &asked;
    asked.next->prefetch();
    const double place = asked.line.place_of(at, group.number);
    const NeighbourLine::Found known = asked.line.around(place);
    asked.last = known.reaches ? known.near : &find(at, place, known.near, lookup, group, asked.line);
    return *asked.last;
  }

 private:
  using Few = std::array<std::unique_ptr<Neighbourhood>, 4>;  // the last first
  // A kernel's calls. Those of a step are asked about one after another again and again: while one is worked
  // out, what the next will need comes from memory. None is ever deleted.
  struct Query {
    std::uint64_t number = 0;  // of a group, from 1, and of the query
    NeighbourLine line;
    Query* next = this;
    const Neighbourhood* last = nullptr;  // none yet

    void prefetch() const {
      prefetch_lines(next, sizeof(Query));
      if (last != nullptr) prefetch_lines(last, sizeof(Neighbourhood));
      line.prefetch();
    }
  };
  static constexpr int kQueryBits = 20, kQueryPlaces = 15, kFewPlaces = 12;
  static constexpr std::size_t kProbes = 4;
  static constexpr double kRounding = 1e-4;  // of distances in single precision, and more

  // `near`: rows of the group not far from the point, or none.
  [[gnu::noinline]] const Neighbourhood& find(const Features& at, double place, const Neighbourhood* near,
                                              const ResidualLookup& lookup, const Group& group,
                                              NeighbourLine& line) {
    double within = std::numeric_limits<double>::infinity();
    if (near != nullptr) {
      const double farthest = std::sqrt(most_of(near->squares_to(at))) + kRounding;
      within = farthest * farthest;
    }
    const NearestRows nearest = group.nearest(at, within);
    const Neighbourhood& found = of(nearest.rows, lookup, group);
    line.learn(place, at, found, group.rows, nearest.further);
    return found;
  }

  template <int Bits>
  static std::size_t scattered(std::uint64_t number) {
    return number * 0x9E3779B97F4A7C15 >> (64 - Bits);  // 2^64 over the golden ratio
  }

  static void prefetch_lines(const void* from, std::size_t bytes) {
    constexpr std::size_t kCacheLine = 64;
    for (std::size_t at = 0; at < bytes; at += kCacheLine)
      __builtin_prefetch(static_cast<const char*>(from) + at);
  }

  Query& query_of(std::uint64_t number) {
    auto* const first = &queries_[scattered<kQueryPlaces>(number)];
    auto* known =
        std::find_if(first, first + kProbes, [&](const auto& q) { return !q || q->number == number; });
    if (known == first + kProbes) known = first;  // its line is forgotten: see NeighbourLine::place_of
    if (!*known) *known = std::make_unique<Query>();
    (*known)->number = number;
    return **known;
  }

  const Neighbourhood& of(const Rows& rows, const ResidualLookup& lookup, const Group& group) {
    constexpr std::uint64_t kRows = 1'000;
    std::uint64_t number = group.number;
    for (const int row : rows) number = number * kRows + static_cast<std::uint64_t>(row);
    Few& few = met_[scattered<kFewPlaces>(number)];
    const auto same = [&](const auto& known) {
      return !known || (known->group == group.number && known->rows == rows);
    };
    const auto found = std::find_if(few.begin(), few.end() - 1, same);
    if (!*found) *found = std::make_unique<Neighbourhood>();
    if (!same(*found)) {
      **found = Neighbourhood(group.number, group.rows, rows, lookup.covariance_);
      (*found)->number = ++settled_;
    }
    std::rotate(few.begin(), found, found + 1);
    return *few[0];
  }

  std::vector<std::unique_ptr<Query>> queries_{(std::size_t{1} << kQueryPlaces) + kProbes};  // by number
  std::vector<Few> met_{std::size_t{1} << kFewPlaces};                                       // by rows
  std::uint64_t settled_ = 0;
  Query none_;
  Query* before_ = &none_;
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

ResidualEstimate ResidualLookup::estimate(const Group& group, const Features& at, std::size_t query) const {
  static thread_local LastMet last_met;
  const Neighbourhood& around = last_met.around(at, query, *this, group);
  Singles to_point = around.squares_to(at);
  const double nearest = std::sqrt(least_of(to_point));
  for (Floats& several : to_point) several = covariance_.of_squares(several);
  const KrigingSystem::KrigingEstimate told = around.about(to_point);
  return {told.mean, covariance_.sd(told.told), nearest};
}

}  // namespace tbdsim
