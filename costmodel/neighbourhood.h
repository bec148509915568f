// Rows that are the nearest of some points, and where these points lie: what a lookup need not find again.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "costmodel/kernel_time.h"
#include "costmodel/kriging.h"
#include "costmodel/nearest_rows.h"

namespace tbdsim {

// Rows, and what they tell of any point.
struct Neighbourhood {
  using Rows = std::array<int, kMostNeighbours>;

  std::uint64_t number = 0;                       // no other of the thread has it
  std::uint64_t group = 0;                        // of the rows: its number
  Rows rows{};                                    // ascending; further ones are infinitely far
  std::array<Numbers, Features::kMost> places{};  // by coordinate
  KrigingSystem system;

  // Of distances. Not returned: a compiler for narrow vectors may align a result too little for wide ones.
  void squares_to(const Features& at, Numbers& squares) const;
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

  // Around the point at this place, with these squares of distances to the rows and to others none less than
  // `further`.
  void learn(double place, const Features& at, const Neighbourhood& around, const Numbers& squares,
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
  [[nodiscard]] Reach reach(const Features& at, const Neighbourhood& around, const Numbers& squares,
                            double further) const;

  std::uint64_t group_ = 0;
  bool straight_ = false;                        // known by a second point
  std::array<double, Features::kMost> from_{};   // the first
  std::array<double, Features::kMost> along_{};  // of length 1, once it is straight
  std::vector<Stretch> stretches_;               // ascending, none into another
};

}  // namespace tbdsim
