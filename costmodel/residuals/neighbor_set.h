// The measured calls nearest to a point with their factorised kriging system: all that an estimate at this
// point, or at any other with the same nearest calls, needs. In scalars of type T: double in fits, float in
// predictions (half the memory and twice the numbers in a vector; means and deviations agree to 1e-6).
#pragma once

#include <array>
#include <cstddef>
#include <iterator>
#include <limits>
#include <span>
#include <utility>

#include "costmodel/families/kernel_time.h"
#include "costmodel/residuals/kriging.h"
#include "costmodel/residuals/kriging_system.h"
#include "costmodel/residuals/nearest_rows.h"
#include "costmodel/residuals/residual_row.h"

namespace tbdsim {

// Index of vector v of column c in a lower triangle stored column by column without the vectors above the
// diagonal: columns 0-3 have kVectors vectors each, columns 4-7 one less, and so on.
[[nodiscard]] constexpr std::size_t index_in_triangle(std::size_t v, std::size_t c) {
  const std::size_t left_out = c / kLanes;  // vectors of this column
  return c * kVectors - kLanes * left_out * (left_out - 1) / 2 - c % kLanes * left_out + v - left_out;
}

struct KrigingEstimate {
  double mean = 0;                // k^T C^-1 r
  double explained_variance = 0;  // k^T C^-1 k
};

template <class T>
class alignas(64) NeighborSet {
 public:
  NeighborSet() = default;
  // `group`: all rows of the group; `rows`: indices of those that are used (nearest_rows).
  NeighborSet(std::span<const ResidualRow> group, const NeighborRows& rows,
              const Covariance<double>& covariance) {
    for (Lanes<T>& coordinate : places_) coordinate.fill(Vector<T>{} + std::numeric_limits<T>::infinity());
    const auto neighbor = [&](std::size_t i) -> const ResidualRow& {
      return group[static_cast<std::size_t>(rows[i])];
    };
    KrigingSystem system;
    for (std::size_t i = 0; i < kMaxNeighbors && rows[i] < std::ssize(group); ++i) {
      const ResidualRow& row = neighbor(i);
      Lanes<double> shared{};  // squared distances to the neighbors before, then covariances with them
      for (std::size_t j = 0; j < i; ++j) shared.set(j, squared_distance(row.at, neighbor(j).at));
      covariance.apply_to(shared, (i + kLanes - 1) / kLanes);
      for (std::size_t j = 0; j < i; ++j) system.covariance[i][j] = shared.at(j);
      system.covariance[i][i] = covariance.variance();
      system.residuals[i] = row.residual;
      for (std::size_t c = 0; c < Features::kMost; ++c) places_[c].set(i, row.at.x[c]);
    }
    const KrigingFactors factors = factorize(system);
    for (std::size_t j = 0; j < kMaxNeighbors; ++j) {
      weights_.set(j, factors.weights[j]);
      for (std::size_t i = j; i < kMaxNeighbors; ++i) {
        Vector<T>& vector = inverse_root_[index_in_triangle(i / kLanes, j)];
        vector[i % kLanes] = static_cast<T>(factors.inverse_root[i][j]);
      }
    }
  }

  [[nodiscard]] ResidualEstimate estimate(const Features& at, const Covariance<T>& covariance) const {
    Lanes<T> to_point = squared_distances(at);
    const double nearest = std::sqrt(min(to_point));
    covariance.apply_to(to_point);
    const KrigingEstimate found = predict(to_point);
    return {found.mean, covariance.sd(found.explained_variance), nearest};
  }

 private:
  // Rows that there are too few of are infinitely far.
  [[nodiscard]] Lanes<T> squared_distances(const Features& at) const {
    Lanes<T> squares{};
    for (std::size_t c = 0; c < static_cast<std::size_t>(at.count); ++c) {
      const auto x = static_cast<T>(at.x[c]);
      for (std::size_t v = 0; v < kVectors; ++v) {
        const Vector<T> offset = places_[c][v] - x;
        squares[v] += offset * offset;
      }
    }
    return squares;
  }

  // `k`: covariances with the point. k^T C^-1 k is |L^-1 k|^2.
  [[nodiscard]] KrigingEstimate predict(const Lanes<T>& k) const {
    Lanes<T> whitened{};  // L^-1 k
    const auto add_column = [&](std::size_t c) __attribute__((always_inline)) {
      for (std::size_t v = c / kLanes; v < kVectors; ++v)
        whitened[v] += inverse_root_[index_in_triangle(v, c)] * k.at(c);
    };
    [&]<std::size_t... c>(std::index_sequence<c...>) __attribute__((always_inline)) { (add_column(c), ...); }
    (std::make_index_sequence<kMaxNeighbors>{});  // unrolled: every index is a constant
    Vector<T> mean{}, explained{};
    for (std::size_t v = 0; v < kVectors; ++v) {
      mean += k[v] * weights_[v];
      explained += whitened[v] * whitened[v];
    }
    return {sum<T>(mean), sum<T>(explained)};
  }

  std::array<Lanes<T>, Features::kMost> places_{};  // the rows' Features::x, by coordinate
  Lanes<T> weights_{};                              // C^-1 r
  std::array<Vector<T>, index_in_triangle(kVectors, kMaxNeighbors - 1)> inverse_root_{};  // L^-1
};

}  // namespace tbdsim
