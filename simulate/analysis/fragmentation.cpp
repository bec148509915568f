#include "simulate/analysis/fragmentation.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>

#include "simulate/analysis/memory_breakdown.h"
#include "simulate/memory/caching_allocator.h"
#include "simulate/memory/iteration_replay.h"
#include "simulate/prediction/predict.h"

namespace tbdsim {
namespace {

constexpr std::size_t kIterations = 200;  // 1000 keep up to a third more
constexpr int kSequences = 5;             // which differ by up to a third
constexpr double kRounding = 1e-9;

// Powers of the plastic number's inverse: pairs of their multiples, modulo 1, are a low-discrepancy sequence
// in the unit square (Roberts, "The Unreasonable Effectiveness of Quasirandom Sequences", 2018).
constexpr double kShareStep = 0.7548776662466927, kPlaceStep = 0.5698402909980532;

double fraction(double x) { return x - std::floor(x); }

// The ratio at quantile `share` of all images, at `place` (0 to 1) within its bin.
double ratio_at(std::span<const RatioBin> ratios, double share, double place) {
  const RatioBin* bin = &ratios.front();
  for (const RatioBin& next : ratios) {
    bin = &next;
    if (share < bin->share) break;
    share -= bin->share;
  }
  return bin->from + place * (bin->to - bin->from);
}

// Predictions by image size, made when a size is first seen.
class SeenLengths {
 public:
  SeenLengths(const Prediction& p, const Resolver& resolve) : resolve_(resolve), scenario_(p.scenario) {
    scenario_.cluster = {};
  }

  const Iteration& iteration(const ImageSize& size) {
    std::unique_ptr<const Prediction>& seen = seen_[size];
    if (seen == nullptr) {
      scenario_.sizes = {{std::string(kHeightSize), size.height}, {std::string(kWidthSize), size.width}};
      seen = std::make_unique<const Prediction>(predict(scenario_, resolve_));
    }
    return largest_iteration(*seen);
  }

 private:
  const Resolver& resolve_;
  Scenario scenario_;
  std::map<ImageSize, std::unique_ptr<const Prediction>> seen_;
};

Bytes reserved_after(std::span<const ImageSize> sizes, const Prediction& p, SeenLengths& seen) {
  CachingAllocator allocator(
      p.framework->allocator.policy,
      static_cast<std::uint64_t>(std::max(0.0, (p.usable_memory() - p.memory.context).si())));
  std::map<ImageSize, IterationReplay> replays;
  for (const ImageSize& size : sizes) {
    const bool first = replays.empty();
    const Iteration& iteration = seen.iteration(size);
    const auto batch = static_cast<double>(iteration.batch);
    IterationReplay& replay =
        replays.try_emplace(size, *iteration.step, iteration.costs, batch, allocator).first->second;
    if (first) replay.allocate_lasting(p.memory.kept_workspaces);
    replay.run();
  }
  return Bytes(static_cast<double>(allocator.reserved()));
}

}  // namespace

ImageSize scaled_image(double ratio, const ImageSides& sides) {
  const double longer = std::max(ratio, 1 / ratio) * static_cast<double>(sides.shorter);
  const std::int64_t other =
      std::min<std::int64_t>(std::llround(std::ceil(longer - kRounding)), sides.longest);
  return ratio < 1 ? ImageSize{other, sides.shorter} : ImageSize{sides.shorter, other};
}

std::vector<ImageSize> sequence_of_sizes(std::span<const RatioBin> ratios, const ImageSides& sides,
                                         std::size_t count, double start) {
  std::vector<ImageSize> sizes;
  for (std::size_t i = 1; i <= count; ++i) {
    const auto step = static_cast<double>(i);
    const double share = fraction(start + step * kShareStep), place = fraction(start + step * kPlaceStep);
    sizes.push_back(scaled_image(ratio_at(ratios, share, place), sides));
  }
  return sizes;
}

std::optional<Bytes> reserved_over_sizes(const Prediction& p, const Resolver& resolve) {
  const std::optional<ImageSides>& sides = p.variant->image_sides;
  const Allocator& allocator = p.framework->allocator;
  if (allocator.static_plan || allocator.policy == AllocatorPolicy::none || !p.scenario.sizes.empty())
    return std::nullopt;
  if (!sides || p.dataset == nullptr || p.dataset->image_ratios.empty()) return std::nullopt;
  SeenLengths seen(p, resolve);
  Bytes sum;
  for (int i = 0; i < kSequences; ++i) {
    const double start = static_cast<double>(i) / kSequences;
    sum += reserved_after(sequence_of_sizes(p.dataset->image_ratios, *sides, kIterations, start), p, seen);
  }
  return sum * (1.0 / kSequences);
}

}  // namespace tbdsim
