#include "calibrate/measure/run/dry_run.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "calibrate/measure/plan/builtin_plan.h"
#include "calibrate/measure/plan/schedule.h"
#include "calibrate/measure/plan/work.h"
#include "hwspecs/base/file.h"

namespace tbdsim::measure {
namespace {
constexpr double kMinute = 60;

bool listed(const std::vector<std::string>& names, const std::string& name) {
  return names.empty() || std::find(names.begin(), names.end(), name) != names.end();
}
}  // namespace

Plan plan_of(const Options& options) {
  Plan plan;
  if (options.plan.empty()) {
    plan = make_plan(builtin_plan());
  } else {
    std::ifstream in = open_input(options.plan);
    plan = read_plan(in, options.plan);
  }
  std::erase_if(plan.points, [&](const PlanPoint& point) {
    return !listed(options.only, point.op) || !listed(options.precisions, point.precision);
  });
  plan.points = ordered(std::move(plan.points), options.seed);
  return plan;
}

std::string dry_run_text(const Plan& plan, double minutes) {
  std::string text = "     #  seconds    total  point\n";
  const TimeBox box(minutes * kMinute);
  double total = 0;
  std::size_t in_time = 0;
  for (std::size_t i = 0; i < plan.points.size(); ++i) {
    const double seconds = guess_seconds(plan.points[i], GpuRates{});
    const bool fits = box.fits(seconds, total);
    if (fits) {
      total += seconds;
      ++in_time;
    }
    std::array<char, 64> numbers{};
    std::snprintf(numbers.data(), numbers.size(), "%6zu %8.2f %8.1f  ", i + 1, seconds, total);
    text += numbers.data() + to_text(plan.points[i]) + (fits ? "" : "  (out of time)") + '\n';
  }
  for (const std::string& line : plan.skipped) text += "skipped: " + line + '\n';
  std::array<char, 160> last{};
  std::snprintf(last.data(), last.size(),
                "%zu points, %zu of them in time, about %.1f minutes; %zu skipped\n", plan.points.size(),
                in_time, total / kMinute, plan.skipped.size());
  return text + last.data();
}

}  // namespace tbdsim::measure
