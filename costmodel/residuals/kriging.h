// Simple kriging (mean 0) of the residuals of measured calls.
//
//   covariance(a, b) = amplitude^2 * exp(-|x_a - x_b| / length) + [x_a = x_b] * own^2 + [a is b] * repeat^2
//   nugget^2         = own^2 + repeat^2
//   mean             = k^T C^-1 r
//   variance         = amplitude^2 + nugget^2 - k^T C^-1 k
//
// x: a call's Features::x; r: residuals ln(measured / formula) of the nearest measured calls; C: their
// covariance matrix; k: their covariances with the call that is estimated. [condition] is 1 where it holds,
// else 0.
#pragma once

#include <cmath>
#include <cstddef>

#include "costmodel/residuals/lanes.h"

namespace tbdsim {

struct Kriging {
  double amplitude = 0.2;  // standard deviation of residuals
  double length = 1;       // correlation length in Features::x: 1 is a factor of two in one size
  double nugget = 0.05;    // standard deviation between calls that are very near
  double repeat = 0.05;    // the part of it that the same call on another GPU does not share; above 0
};

// Two calls at a smaller distance in Features::x are the same call: sizes of 2^32 bytes rounded to single
// precision move by up to 2e-6.
inline constexpr double kSamePlace = 1e-5;

// The covariance function, evaluated in T (float or double).
template <class T>
class Covariance {
 public:
  explicit Covariance(const Kriging& kriging)
      : variance_(kriging.amplitude * kriging.amplitude + kriging.nugget * kriging.nugget),
        repeat2_(std::fmin(kriging.nugget * kriging.nugget, kriging.repeat * kriging.repeat)),
        amplitude2_(static_cast<T>(kriging.amplitude * kriging.amplitude)),
        inverse_length_(static_cast<T>(-1 / kriging.length)),
        own2_(static_cast<T>(kriging.nugget * kriging.nugget - repeat2_)) {}

  // Replaces squared distances by covariances in the first `vectors`.
  void apply_to(Lanes<T>& squared_distances, std::size_t vectors = kVectors) const {
    for (std::size_t v = 0; v < vectors; ++v) {
      Vector<T>& x = squared_distances[v];
      for (std::size_t lane = 0; lane < kLanes; ++lane) x[lane] = std::sqrt(x[lane]);
      const Vector<T> own = x < static_cast<T>(kSamePlace) ? Vector<T>{} + own2_ : Vector<T>{};
      x *= inverse_length_;
      exponentiate(x);
      x = amplitude2_ * x + own;
    }
  }
  // Variance of a call with itself on the same GPU.
  [[nodiscard]] double variance() const { return variance_; }
  // Standard deviation of a new measurement where the neighbors explain k^T C^-1 k of the variance; at least
  // `repeat`.
  [[nodiscard]] double sd(double explained_variance) const {
    const double left = variance_ - explained_variance;
    return std::sqrt(left > repeat2_ ? left : repeat2_);
  }

 private:
  double variance_, repeat2_;
  T amplitude2_, inverse_length_, own2_;
};

}  // namespace tbdsim
