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
    constexpr double kSamePlace = 1e-6;
    return amplitude2_ * std::exp(-distance / length_) + (distance < kSamePlace ? nugget2_ - repeat2_ : 0);
  }
  [[nodiscard]] double of_itself() const { return amplitude2_ + nugget2_; }
  // Of a new value at the point, `told` being k C^-1 k. No value is surer than a repeat of the same call.
  [[nodiscard]] double sd(double told) const {
    const double left = of_itself() - told;
    return std::sqrt(left > repeat2_ ? left : repeat2_);
  }

 private:
  double amplitude2_, nugget2_, repeat2_, length_;
};

// C, k and r of up to kMost neighbours, all of which must be set. Those that are not there are independent and
// tell nothing: of a fixed size, the system is solved in half the time.
class KrigingSystem {
 public:
  static constexpr std::size_t kMost = 12;

  explicit KrigingSystem(std::size_t neighbours) {
    if (neighbours == kMost) return;
    for (std::size_t j = 0; j < kMost; ++j) {
      columns_[j].fill(0);
      columns_[j][place(j)] = 1;
    }
  }

  void set_covariance(std::size_t i, std::size_t j, double value) { columns_[j][place(i)] = value; }  // i >= j
  void set_neighbour(std::size_t j, double to_point, double value) {
    columns_[j][kToPoint] = to_point;
    columns_[j][kValue] = value;
    for (std::size_t v = place(j) + 1; v % kAtOnce != 0; ++v) columns_[j][v] = 0;  // read, but mean nothing
  }

  struct Solution {
    double mean;  // k C^-1 r
    double told;  // k C^-1 k
  };
  [[nodiscard]] Solution solve();  // once: it overwrites what was set

 private:
  // Columns of the lower triangle of C, bottom up, with k and r as two more rows at the bottom: what is left
  // of a column, when columns before it are eliminated, starts at its first place. It is gone through in whole
  // vectors.
  static constexpr std::size_t kToPoint = 0, kValue = 1, kAtOnce = 4;
  static constexpr std::size_t place(std::size_t row) { return kMost + 1 - row; }
  alignas(kAtOnce * sizeof(double)) std::array<std::array<double, 4 * kAtOnce>, kMost> columns_;
};

}  // namespace tbdsim
