#include "simulate/sweep/layout_sweep.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "hwspecs/base/error.h"
#include "simulate/job/layout_metrics.h"
#include "simulate/workload/change_scope.h"

namespace tbdsim {
namespace {

bool has_axis(const Sweep& sweep, std::string_view key) {
  return std::any_of(sweep.axes.begin(), sweep.axes.end(),
                     [&](const SweepAxis& axis) { return axis.key() == key; });
}

}  // namespace

bool is_layout_key(std::string_view name) {
  const auto keys = job_keys();
  return std::any_of(keys.begin(), keys.end(),
                     [&](const JobKey& key) { return key.name == name && key.group == JobKeyGroup::layout; });
}

void check_layouts(const Sweep& sweep, SpecCache& specs) {
  if (!has_axis(sweep, "model") && !has_axis(sweep, "layers"))
    throw UsageError("a sweep needs a model; expected --model with one or several");
  if (!has_axis(sweep, "gpu") && !has_axis(sweep, "machine"))
    throw UsageError("a sweep needs a gpu; expected --gpu with one or several");
  double points = 1;
  for (const SweepAxis& axis : sweep.axes) {
    points *= axis.size();
    const auto twice = std::count_if(sweep.axes.begin(), sweep.axes.end(),
                                     [&](const SweepAxis& other) { return other.key() == axis.key(); });
    if (twice > 1)
      throw UsageError(axis.key() + " is given twice; expected one axis with all its values, as 8,16,32");
    for (const std::string& value : axis.ends()) {
      if (axis.key().find('.') != std::string::npos) {
        (void)SpecCache(specs, {parse_change(axis.key() + "=" + value)});
        continue;
      }
      JobRequest tried;
      set_job(tried, axis.key(), value);
      if (axis.key() == "model") (void)specs.model(value);
      if (axis.key() == "gpu") (void)specs.gpu(value);
      if (axis.key() == "machine") (void)specs.machine(value);
    }
  }
  if (points > static_cast<double>(kMostPoints))
    throw UsageError(
        fmt::format("the axes make {:.0f} points; expected at most {}: fewer values, or larger steps", points,
                    kMostPoints));
}

// The job of the last point without its layout, and what was computed for it.
struct LayoutPredictor::State {
  const Sweep& sweep;
  SpecCache& specs;
  std::string known{};  // values of the axes of `job`, a line each
  std::unique_ptr<SpecCache> changed{};
  std::optional<ResolvedJob> job{};
  std::optional<PieceTable> pieces{};

  State(const Sweep& swept, SpecCache& from) : sweep(swept), specs(from) {}

  void resolve(const std::vector<std::string>& values) {
    std::string asked;
    for (std::size_t a = 0; a < values.size(); ++a) {
      if (!is_layout_key(sweep.axes[a].key())) asked += values[a] + '\n';
    }
    if (job && asked == known) return;
    pieces.reset();
    job.reset();
    JobRequest request;
    SpecChanges changes;
    for (std::size_t a = 0; a < values.size(); ++a) {
      const std::string& key = sweep.axes[a].key();
      if (key.find('.') != std::string::npos)
        changes.push_back(parse_change(key + "=" + values[a]));
      else if (!is_layout_key(key))
        set_job(request, key, values[a]);
    }
    changed = changes.empty() ? nullptr : std::make_unique<SpecCache>(specs, changes);
    job = resolve_job(request, changed ? *changed : specs);
    pieces.emplace(job->inputs);
    known = asked;
  }

  JobPrediction predict(const std::vector<std::string>& values) {
    resolve(values);
    JobRequest request;
    for (std::size_t a = 0; a < values.size(); ++a) {
      const std::string& key = sweep.axes[a].key();
      if (is_layout_key(key) || key == "search") set_job(request, key, values[a]);
    }
    take_layout(*job, request);
    return predict_job(*job, *pieces);
  }
};

LayoutPredictor::LayoutPredictor(const Sweep& sweep, SpecCache& specs)
    : state_(std::make_unique<State>(sweep, specs)) {}
LayoutPredictor::~LayoutPredictor() = default;
LayoutPredictor::LayoutPredictor(LayoutPredictor&&) noexcept = default;

SweepPoint LayoutPredictor::at(std::int64_t point) {
  const Sweep& sweep = state_->sweep;
  SweepPoint result;
  result.values = values_at(sweep, point);
  const std::size_t shown = sweep.metrics.size();
  result.metrics.resize(shown + sweep.judged.size());
  try {
    const JobPrediction p = state_->predict(result.values);
    for (std::size_t m = 0; m < result.metrics.size(); ++m) {
      const Metric& metric = *(m < shown ? sweep.metrics[m] : sweep.judged[m - shown]);
      result.metrics[m] = find_layout_metric(std::string(metric.name)).value(p);
    }
    result.status = p.fits() ? "ok" : "out of memory";
  } catch (const Error& wrong) {
    result.status = wrong.what();
  }
  return result;
}

}  // namespace tbdsim
