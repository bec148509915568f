#include "costmodel/residuals/kriging.h"

namespace tbdsim {
namespace {

constexpr std::size_t kMost = kMostNeighbours, kVectors = kMost / kLanes;

double sum(const Doubles& x) { return (x[0] + x[1]) + (x[2] + x[3]); }

}  // namespace

// Each neighbour is taken out of those after it and out of unit vectors, which become the columns of L^-1.
TBDSIM_WIDE_VECTORS void KrigingSystem::factorize() {
  std::array<Numbers, kMost> inverse{};
  Numbers roots{};  // of D^-1
  for (std::size_t j = 0; j < kMost; ++j) {
    inverse[j].set(j, 1);
    const double pivot = columns_[j].at(j);
    const double left = pivot > 0 ? 1 / pivot : 0;  // not above 0, by rounding: it repeats others
    roots.set(j, std::sqrt(left));
    Numbers factors;  // of those after it
    for (std::size_t v = 0; v < kVectors; ++v) {
      const auto place = static_cast<std::int64_t>(v * kLanes);
      const Integers after = Integers{place, place + 1, place + 2, place + 3} > static_cast<std::int64_t>(j);
      factors[v] = (Doubles)((Integers)(columns_[j][v] * left) & after);
    }
    for (std::size_t l = j + 1; l < kMost; ++l) {
      const double shared = factors.at(l);
      for (std::size_t v = l / kLanes; v < kVectors; ++v) columns_[l][v] -= columns_[j][v] * shared;
    }
    for (std::size_t c = 0; c <= j; ++c) {
      const double shared = inverse[c].at(j);
      for (std::size_t v = j / kLanes; v < kVectors; ++v) inverse[c][v] -= factors[v] * shared;
    }
  }
  Numbers values{};  // D^-1/2 L^-1 r
  for (std::size_t c = 0; c < kMost; ++c) {
    for (std::size_t v = 0; v < kVectors; ++v) {
      columns_[c][v] = inverse[c][v] * roots[v];
      values[v] += columns_[c][v] * weights_.at(c);
    }
  }
  for (std::size_t c = 0; c < kMost; ++c) {
    Doubles weight{};
    for (std::size_t v = 0; v < kVectors; ++v) weight += columns_[c][v] * values[v];
    weights_.set(c, sum(weight));
  }
}

TBDSIM_WIDE_VECTORS KrigingSystem::KrigingEstimate KrigingSystem::about(const Numbers& to_point) const {
  Numbers apart{};  // D^-1/2 L^-1 k
  for (std::size_t c = 0; c < kMost; ++c) {
    const double k = to_point.at(c);
    for (std::size_t v = c / kLanes; v < kVectors; ++v) apart[v] += columns_[c][v] * k;
  }
  Doubles mean{}, told{};
  for (std::size_t v = 0; v < kVectors; ++v) {
    mean += to_point[v] * weights_[v];
    told += apart[v] * apart[v];
  }
  return {sum(mean), sum(told)};
}

}  // namespace tbdsim
