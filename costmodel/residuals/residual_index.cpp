#include "costmodel/residuals/residual_index.h"

#include <algorithm>
#include <bit>

#include "costmodel/residuals/nearest_rows.h"

namespace tbdsim {
namespace {

void mix(std::uint64_t& hash, double number) {
  constexpr std::uint64_t kMultiplier = 0x9E3779B97F4A7C15;  // 2^64 over the golden ratio
  constexpr int kHalf = 32;
  hash = (hash ^ std::bit_cast<std::uint64_t>(number)) * kMultiplier;
  hash ^= hash >> kHalf;
}

std::uint64_t fingerprint_of(std::span<const ResidualRow> rows, const Kriging& kriging) {
  std::uint64_t hash = rows.size();
  for (const double parameter : {kriging.amplitude, kriging.length, kriging.nugget, kriging.repeat})
    mix(hash, parameter);
  for (const ResidualRow& row : rows) {
    mix(hash, row.residual);
    for (std::size_t c = 0; c < static_cast<std::size_t>(row.at.count); ++c) mix(hash, row.at.x[c]);
  }
  return hash;
}

}  // namespace

ResidualIndex::ResidualIndex(const ResidualTable& table, const Kriging& kriging)
    : covariance_(kriging), single_(kriging) {
  const std::span<const ResidualRow> all = table.rows();
  for (std::size_t begin = 0, end = 0; begin < all.size(); begin = end) {
    while (end < all.size() && all[end].at.group == all[begin].at.group) ++end;
    const std::span<const ResidualRow> rows = all.subspan(begin, end - begin);
    groups_.push_back({rows.front().at.group, rows, fingerprint_of(rows, kriging)});
  }
}

const ResidualIndex::Group* ResidualIndex::find(std::uint64_t group) const {
  const auto found = std::lower_bound(groups_.begin(), groups_.end(), group,
                                      [](const Group& g, std::uint64_t id) { return g.id < id; });
  return found == groups_.end() || found->id != group ? nullptr : &*found;
}

bool ResidualIndex::has_any(std::uint64_t group, std::uint64_t mask) const {
  return std::ranges::any_of(groups_, [&](const Group& g) { return (g.id & mask) == (group & mask); });
}

ResidualEstimate ResidualIndex::estimate(const Group& group, const Features& at) const {
  return neighbors(group, nearest_rows(group.rows, at).rows).estimate(at, single_);
}

}  // namespace tbdsim
