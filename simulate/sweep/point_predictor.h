// A million designs: every combination of the axes' values, predicted. The last axis varies fastest; points
// have numbers from 0, and what is said of one does not depend on which were predicted before it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "simulate/prediction/metrics.h"
#include "simulate/prediction/prediction.h"
#include "simulate/sweep/axis.h"

namespace tbdsim {

inline constexpr std::int64_t kMostPoints = 1'000'000'000;

struct Sweep {
  std::vector<SweepAxis> axes;
  std::vector<const Metric*> metrics{};  // columns beside the axes
  std::vector<const Metric*> judged{};   // further ones that no column shows
};

struct SweepPoint {
  std::vector<std::string> values;  // of the axes
  // Then the judged ones; none where the point has an error, or the metric no value.
  std::vector<std::optional<double>> metrics;
  std::string status;  // "ok", "out of memory" (its times are hypothetical) or an error

  [[nodiscard]] bool ok() const { return status == "ok"; }
};

// Throws UsageError or SpecError for what is wrong with the sweep as a whole: axes that contradict one
// another or are missing, names and keys that do not exist, more points than kMostPoints. Combinations that
// are impossible (a variant that a framework does not train) are left to the points.
void check(const Sweep& sweep, SpecCache& specs);

[[nodiscard]] std::int64_t points_of(const Sweep& sweep);

// The axes' values at point number `point`, from 0; the last axis varies fastest.
[[nodiscard]] std::vector<std::string> values_at(const Sweep& sweep, std::int64_t point);

// Predicts points one by one. Neighbours share work: where only rates of the GPU change, the rest is kept.
class PointPredictor {
 public:
  // Both must outlive it.
  PointPredictor(const Sweep& sweep, SpecCache& specs);
  ~PointPredictor();
  PointPredictor(PointPredictor&&) noexcept;

  [[nodiscard]] SweepPoint at(std::int64_t point);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tbdsim
