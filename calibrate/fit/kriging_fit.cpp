#include "calibrate/fit/kriging_fit.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "hwspecs/base/statistics.h"

namespace tbdsim {
namespace {

constexpr double kLengths[] = {0.35, 0.7, 1.4, 2.8, 5.6, 12};
constexpr double kNuggets[] = {0.1, 0.25, 0.5, 1.0, 2.0};  // of the amplitude
constexpr double kSharedNuggets[] = {0.2, 0.5, 1.0};       // repeat, of the nugget
constexpr std::size_t kMostLeftOut = 400;                  // of a table or a card
constexpr std::size_t kFewestRows = 4;
constexpr double kLeastRepeat = 1e-3;    // what a profile may hold
constexpr std::size_t kFewestCards = 4;  // with fewer, an outlier cannot be identified

double robust_spread(const std::vector<ResidualRow>& rows) {
  constexpr double kLeast = 0.02;
  std::vector<double> sizes;
  for (const ResidualRow& row : rows) sizes.push_back(std::abs(row.residual));
  const double clip = 3 * 1.4826 * median(sizes);
  double sum = 0;
  for (const double size : sizes) sum += std::min(size, clip) * std::min(size, clip);
  return std::max(kLeast, std::sqrt(sum / static_cast<double>(sizes.size())));
}

// A left-out residual and the nearest rows, from which it is estimated.
struct LeftOut {
  const ResidualTable* table;
  Features at;
  double residual;
  NearestRows nearest;

  LeftOut(const ResidualTable& from, const ResidualRow& row, int index)
      : table(&from), at(row.at), residual(row.residual), nearest(from.nearest(row.at, index)) {}
  [[nodiscard]] double error(const Kriging& kriging) const {
    return residual - table->estimate(at, kriging, nearest).mean;
  }
};

// Mean |error| over all groups of left-out rows; `own_median`: after subtracting the median of each group.
double misses(const std::vector<std::vector<LeftOut>>& groups, const Kriging& kriging, bool own_median) {
  double sum = 0;
  std::size_t count = 0;
  for (const std::vector<LeftOut>& group : groups) {
    std::vector<double> errors;
    for (const LeftOut& one : group) errors.push_back(one.error(kriging));
    const double middle = own_median && !errors.empty() ? median(errors) : 0;
    for (const double error : errors) sum += std::abs(error - middle);
    count += errors.size();
  }
  return sum / static_cast<double>(std::max<std::size_t>(1, count));
}

std::size_t stride_of(std::size_t rows) { return std::max<std::size_t>(1, rows / kMostLeftOut); }

// The table of all cards except `card` ("": of all): for each call the median over the cards, as in
// predictions.
ResidualTable table_without(const std::map<std::string, std::vector<ResidualRow>>& cards,
                            const std::string& card) {
  std::map<std::pair<std::uint64_t, decltype(Features::x)>, std::pair<Features, std::vector<double>>> places;
  for (const auto& [name, rows] : cards) {
    if (name == card) continue;
    for (const ResidualRow& row : rows) {
      auto& place = places[{row.at.group, row.at.x}];
      place.first = row.at;
      place.second.push_back(row.residual);
    }
  }
  std::vector<ResidualRow> merged;
  for (const auto& [key, place] : places) merged.push_back({place.first, median(place.second)});
  return ResidualTable(std::move(merged));
}

}  // namespace

Kriging fit_kriging(const ResidualTable& table) {
  const std::vector<ResidualRow>& rows = table.rows();
  Kriging best;
  if (rows.size() < kFewestRows) return best;
  const double amplitude = robust_spread(rows);
  std::vector<std::vector<LeftOut>> left(1);
  for (std::size_t i = 0; i < rows.size(); i += stride_of(rows.size()))
    left[0].emplace_back(table, rows[i], static_cast<int>(i));
  double least = std::numeric_limits<double>::infinity();
  for (const double length : kLengths) {
    for (const double nugget : kNuggets) {
      const Kriging kriging{amplitude, length, nugget * amplitude};
      const double error = misses(left, kriging, false);
      if (error >= least) continue;
      least = error;
      best = kriging;
    }
  }
  return best;
}

Kriging fit_kriging_between(const std::map<std::string, std::vector<ResidualRow>>& cards) {
  if (cards.size() < kFewestCards) return fit_kriging(table_without(cards, ""));
  std::vector<ResidualRow> all;
  for (const auto& [card, rows] : cards) all.insert(all.end(), rows.begin(), rows.end());
  std::vector<ResidualTable> tables;
  tables.reserve(cards.size());
  std::vector<std::vector<LeftOut>> left;
  for (const auto& [card, rows] : cards) {
    tables.push_back(table_without(cards, card));
    left.emplace_back();
    for (std::size_t i = 0; i < rows.size(); i += stride_of(rows.size()))
      left.back().emplace_back(tables.back(), rows[i], -1);
  }
  const double amplitude = robust_spread(all);
  Kriging best;
  double least = std::numeric_limits<double>::infinity();
  for (const double length : kLengths) {
    for (const double nugget : kNuggets) {
      for (const double repeat : kSharedNuggets) {
        const Kriging kriging{amplitude, length, nugget * amplitude,
                              std::max(kLeastRepeat, repeat * nugget * amplitude)};
        const double error = misses(left, kriging, true);
        if (error >= least) continue;
        least = error;
        best = kriging;
      }
    }
  }
  return best;
}

}  // namespace tbdsim
