// Kriging with few neighbours: what is expected at a point of a random field of which some values are known.
//
//   covariance(a, b) = amplitude^2 exp(-|x_a - x_b| / length) + [x_a = x_b] own^2 + [a is b] repeat^2
//   nugget^2 = own^2 + repeat^2
//   mean = k C^-1 r,   variance = amplitude^2 + nugget^2 - k C^-1 k
//
// C: covariances of the neighbours, k: theirs with the point, r: their values.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <span>

#include "costmodel/wide_vectors.h"

namespace tbdsim {

struct Kriging {
  double amplitude = 0.2;  // standard deviation of residuals
  double length = 1;       // in Features::x: 1 is a factor of two in one size
  double nugget = 0.05;    // what a call differs by from calls very near
  double repeat = 0.05;    // the part of it that the same call on another card does not share
};

// The covariance of two calls at a distance.
class Covariance {
 public:
  explicit Covariance(const Kriging& kriging)
      : amplitude2_(kriging.amplitude * kriging.amplitude),
        nugget2_(kriging.nugget * kriging.nugget),
        repeat2_(std::fmin(nugget2_, kriging.repeat * kriging.repeat)),
        length_(kriging.length) {}

  [[nodiscard]] double operator()(double distance) const {
    return amplitude2_ * std::exp(-distance / length_) + (distance < kSamePlace ? nugget2_ - repeat2_ : 0);
  }
  // Distances become covariances.
  void apply(std::span<Doubles> distances) const;
  [[nodiscard]] double of_itself() const { return amplitude2_ + nugget2_; }
  // Of a new value at the point, `told` being k C^-1 k. No value is surer than a repeat of the same call.
  [[nodiscard]] double sd(double told) const {
    const double left = of_itself() - told;
    return std::sqrt(left > repeat2_ ? left : repeat2_);
  }

 private:
  static constexpr double kSamePlace = 1e-6;
  double amplitude2_, nugget2_, repeat2_, length_;
};

// C, k and r of up to kMost neighbours, for several points at a time: each has a lane of every vector.
// Neighbours that are not set are independent and tell nothing.
class KrigingSystems {
 public:
  static constexpr std::size_t kMost = 12;

  KrigingSystems() {
    for (std::size_t j = 0; j < kMost; ++j) columns_[j][j] += 1;
  }

  void set_covariance(std::size_t lane, std::size_t i, std::size_t j, double value) {  // i >= j
    columns_[j][i][lane] = value;
  }
  void set_neighbour(std::size_t lane, std::size_t j, double to_point, double value) {
    columns_[j][kToPoint][lane] = to_point;
    columns_[j][kValue][lane] = value;
  }

  struct Solution {
    Doubles mean{};  // k C^-1 r
    Doubles told{};  // k C^-1 k
  };
  [[nodiscard]] Solution solve();  // overwrites what was set: each lane that is read is set anew before

 private:
  // Columns of the lower triangle of C, with k and r as two more rows.
  static constexpr std::size_t kToPoint = kMost, kValue = kMost + 1, kRows = kMost + 2;
  std::array<std::array<Doubles, kRows>, kMost> columns_{};
};

}  // namespace tbdsim
