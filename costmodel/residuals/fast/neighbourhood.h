// Rows that are the nearest of some points, and where these points lie: what a lookup need not find again.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "costmodel/families/kernel_time.h"
#include "costmodel/residuals/fast/floats.h"
#include "costmodel/residuals/kriging.h"
#include "costmodel/residuals/residual_table.h"

namespace tbdsim {

inline constexpr std::size_t kVectors = kMostNeighbours / kFloats;

// One number for each neighbour.
struct Singles : std::array<Floats, kVectors> {
  void set(std::size_t i, double value) { (*this)[i / kFloats][i % kFloats] = static_cast<float>(value); }
};
[[nodiscard]] inline float least_of(const Singles& x) {
  Floats least = x[0];
  for (const Floats& others : x) least = least < others ? least : others;
  return least_of(least);
}
[[nodiscard]] inline float most_of(const Singles& x) {
  Floats most = x[0];
  for (const Floats& others : x) most = most > others ? most : others;
  return most_of(most);
}

// Of a lower triangle, whose columns follow one another without their vectors of zeros: where vector v of
// column c is.
[[nodiscard]] constexpr std::size_t in_triangle(std::size_t v, std::size_t c) {
  const std::size_t zeros = c / kFloats;  // of the column; of kFloats before it one less, and so on
  return c * kVectors - kFloats * zeros * (zeros - 1) / 2 - c % kFloats * zeros + v - zeros;
}

// Rows, and what they tell of any point, to six digits: asked of every kernel of every prediction, it is half
// as long and as much work as in double precision. From where a line of the processor's cache begins.
struct alignas(64) Neighbourhood {
  using Rows = std::array<int, kMostNeighbours>;

  std::uint64_t number = 0;                       // no other of the thread has it
  std::uint64_t group = 0;                        // of the rows: its number
  std::array<Singles, Features::kMost> places{};  // by coordinate
  // As KrigingSystem's.
  Singles weights{};
  std::array<Floats, in_triangle(kVectors, kMostNeighbours - 1)> inverse_root{};  // see in_triangle()
  Rows rows{};  // ascending; further ones are infinitely far

  Neighbourhood() = default;
  // `all`: the rows of the group.
  Neighbourhood(std::uint64_t group, std::span<const ResidualRow> all, const Rows& rows,
                const Covariance& covariance);

  // Of distances.
  [[nodiscard]] Singles squares_to(const Features& at) const {
    Singles squares{};
    for (std::size_t c = 0; c < static_cast<std::size_t>(at.count); ++c) {
      const auto x = static_cast<float>(at.x[c]);
      for (std::size_t v = 0; v < squares.size(); ++v) squares[v] += (places[c][v] - x) * (places[c][v] - x);
    }
    return squares;
  }

  // As KrigingSystem's, of covariances with a point.
  [[nodiscard]] KrigingSystem::KrigingEstimate about(const Singles& to_point) const {
    Singles apart{};  // D^-1/2 L^-1 k
    const auto add_column = [&](std::size_t c) __attribute__((always_inline)) {
      const float k = to_point[c / kFloats][c % kFloats];
      for (std::size_t v = c / kFloats; v < apart.size(); ++v)
        apart[v] += inverse_root[in_triangle(v, c)] * k;
    };
    [&]<std::size_t... c>(std::index_sequence<c...>) __attribute__((always_inline)) { (add_column(c), ...); }
    (std::make_index_sequence<kMostNeighbours>{});  // each place is then a constant
    Floats mean{}, told{};
    for (std::size_t v = 0; v < apart.size(); ++v) {
      mean += to_point[v] * weights[v];
      told += apart[v] * apart[v];
    }
    return {sum_of(mean), sum_of(told)};
  }
};

// A kernel's calls at different batches lie on a straight line. The points whose nearest rows are the same
// are a convex set: where two of a line are, all between are.
class NeighbourLine {
 public:
  // The point's place on the line; a new line where it does not lie on it.
  [[nodiscard]] double place_of(const Features& at, std::uint64_t group);

  struct Found {
    const Neighbourhood* near = nullptr;  // the place's, or one of the group met near it, or none
    bool reaches = false;                 // it is the place's
  };
  [[nodiscard]] Found around(double place) const;

  // What around() will read.
  void prefetch() const { __builtin_prefetch(stretches_.data()); }

  // Around the point at this place, no other of the group's rows lies nearer than the square `further`.
  void learn(double place, const Features& at, const Neighbourhood& around, std::span<const ResidualRow> all,
             double further);

 private:
  struct Stretch {
    double low, high;
    const Neighbourhood* around;  // may be another by now
    std::uint64_t number;
  };
  struct Reach {
    double down, up;
  };
  [[nodiscard]] Reach reach(const Features& at, const Neighbourhood& around, std::span<const ResidualRow> all,
                            double further) const;

  std::uint64_t group_ = 0;
  bool straight_ = false;                        // known by a second point
  std::array<double, Features::kMost> from_{};   // the first
  std::array<double, Features::kMost> along_{};  // of length 1, once it is straight
  std::vector<Stretch> stretches_;               // ascending, none into another
};

}  // namespace tbdsim
