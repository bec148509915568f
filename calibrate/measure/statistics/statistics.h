// Robust statistics of repeated timings, and the rule for repeating them. Host only; reads no clock.
#pragma once

#include <span>
#include <vector>

namespace tbdsim::measure {

struct Summary {
  double median = 0;  // seconds
  double spread = 0;  // 1.4826 * MAD / median: the standard deviation of a normal distribution, relative
  int samples = 0;
};

// Median of at least one value (the mean of the middle two for an even number).
[[nodiscard]] double median(std::span<const double> values);
[[nodiscard]] Summary summarize(std::span<const double> samples);

// 15 to 31 repetitions after 3 warm-up calls, again when the spread exceeds 3 % (protocol of the cost model
// study).
struct StoppingRule {
  int warm_up = 3;
  int first_burst = 15;
  int next_burst = 16;
  int most_samples = 63;
  double spread = 0.03;
  double most_seconds = 2.0;  // of repetitions; reached, the point is closed with the samples there are
  int fewest_samples = 5;     // taken even when they last longer than most_seconds
};

// Number of further calls to time; 0 when the samples suffice. `call_seconds`: time of one repetition with
// flush and launch, from the warm-up; `spent`: seconds already spent on `samples`.
[[nodiscard]] int more_samples(const StoppingRule& rule, std::span<const double> samples, double spent,
                               double call_seconds);

}  // namespace tbdsim::measure
