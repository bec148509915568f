// Throttle detection: a reference GEMM is timed every few points. Its time over the shortest so far grows
// when the GPU slows down (power, heat, another process). Host only.
#pragma once

namespace tbdsim::measure {

class ThrottleWatch {
 public:
  static constexpr int kPointsBetween = 20;      // points between two reference timings
  static constexpr double kSecondsBetween = 10;  // or seconds, whichever comes first
  static constexpr double kThrottled = 1.10;     // slower than this: wait for the GPU to recover
  static constexpr int kMostPauses =
      3;  // per detection; after that measure on (Record::slowdown has the ratio)

  // True when a reference timing is due.
  [[nodiscard]] bool due(double now_s) const;
  void count_point() { ++points_; }
  // Takes a reference time (> 0).
  void add(double reference_s, double now_s);

  // Last reference time over the fastest so far: 1 or more; 0 before the first.
  [[nodiscard]] double slowdown() const { return fastest_s_ > 0 ? last_s_ / fastest_s_ : 0; }
  // True when the run should pause and then time the reference again.
  [[nodiscard]] bool should_pause() const { return slowdown() > kThrottled && pauses_ < kMostPauses; }
  void count_pause() { ++pauses_; }
  [[nodiscard]] double fastest_s() const { return fastest_s_; }

 private:
  double fastest_s_ = 0;
  double last_s_ = 0;
  double last_at_s_ = 0;
  int points_ = 0;
  int pauses_ = 0;
};

}  // namespace tbdsim::measure
