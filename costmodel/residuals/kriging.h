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

#include "costmodel/residuals/fast/floats.h"
#include "costmodel/residuals/fast/wide_vectors.h"

namespace tbdsim {

struct Kriging {
  double amplitude = 0.2;  // standard deviation of residuals
  double length = 1;       // in Features::x: 1 is a factor of two in one size
  double nugget = 0.05;    // what a call differs by from calls very near
  double repeat = 0.05;    // the part of it that the same call on another card does not share
};

inline constexpr std::size_t kMostNeighbours = 12;

// One number for each neighbour. Aligned as processors with wide vectors want it, whoever made it.
struct alignas(sizeof(Doubles)) Numbers : std::array<Doubles, kMostNeighbours / kLanes> {
  [[nodiscard]] double at(std::size_t i) const { return (*this)[i / kLanes][i % kLanes]; }
  void set(std::size_t i, double value) { (*this)[i / kLanes][i % kLanes] = value; }
};

// Calls nearer than this, in Features::x, are the same: rounded to single precision a call of 2^32 bytes
// moves by up to 2e-6.
inline constexpr double kSamePlace = 1e-5;

// The covariance of two calls at a distance.
class Covariance {
 public:
  explicit Covariance(const Kriging& kriging)
      : amplitude2_(kriging.amplitude * kriging.amplitude),
        nugget2_(kriging.nugget * kriging.nugget),
        repeat2_(std::fmin(nugget2_, kriging.repeat * kriging.repeat)),
        length_(kriging.length),
        of_floats_{static_cast<float>(amplitude2_), static_cast<float>(-1 / length_),
                   static_cast<float>(nugget2_ - repeat2_)} {}

  [[nodiscard]] double operator()(double distance) const {
    return amplitude2_ * std::exp(-distance / length_) + (distance < kSamePlace ? nugget2_ - repeat2_ : 0);
  }
  // Of squares of distances.
  [[nodiscard]] Floats of_squares(Floats squares) const {
    const Floats distance = root_of(squares);
    const Floats own = distance < static_cast<float>(kSamePlace) ? Floats{} + of_floats_.own : Floats{};
    return of_floats_.amplitude2 * exponential(distance * of_floats_.per_distance) + own;
  }
  [[nodiscard]] double of_itself() const { return amplitude2_ + nugget2_; }
  // Of a new value at the point, `told` being k C^-1 k. No value is surer than a repeat of the same call.
  [[nodiscard]] double sd(double told) const {
    const double left = of_itself() - told;
    return std::sqrt(left > repeat2_ ? left : repeat2_);
  }

 private:
  double amplitude2_, nugget2_, repeat2_, length_;
  struct {
    float amplitude2, per_distance, own;
  } of_floats_;
};

// What up to kMostNeighbours tell of any point: C is taken apart once. Neighbours that are not set are
// independent and tell nothing.
class KrigingSystem {
 public:
  KrigingSystem() {
    for (std::size_t j = 0; j < kMostNeighbours; ++j) set_covariance(j, j, 1);
  }

  void set_covariance(std::size_t i, std::size_t j, double value) {  // i >= j
    columns_[j].set(i, value);
  }
  void set_value(std::size_t j, double value) { weights_.set(j, value); }
  void factorize();  // once, when all is set

  struct KrigingEstimate {
    double mean = 0;  // k C^-1 r
    double told = 0;  // k C^-1 k
  };
  [[nodiscard]] KrigingEstimate about(const Numbers& to_point) const;

  // Once it is taken apart, of D^-1/2 L^-1 with C = L D L' (below the diagonal and on it), and of C^-1 r.
  [[nodiscard]] double inverse_root(std::size_t i, std::size_t j) const { return columns_[j].at(i); }
  [[nodiscard]] double weight(std::size_t j) const { return weights_.at(j); }

 private:
  // The lower triangle of C, from factorize() on that of D^-1/2 L^-1; r, then C^-1 r.
  std::array<Numbers, kMostNeighbours> columns_{};
  Numbers weights_{};
};

}  // namespace tbdsim
