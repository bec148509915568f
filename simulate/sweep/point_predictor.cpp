#include "simulate/sweep/point_predictor.h"

#include <algorithm>
#include <map>
#include <utility>

#include "costmodel/residuals/fast/estimate_cache.h"
#include "hwspecs/base/error.h"
#include "hwspecs/base/spec_reader.h"
#include "simulate/prediction/cluster_machine.h"
#include "simulate/prediction/predict.h"
#include "simulate/prediction/repredict.h"
#include "simulate/prediction/resolve.h"
#include "simulate/prediction/scenario_keys.h"
#include "simulate/workload/change_scope.h"

namespace tbdsim {
namespace {

// The part of the scenario, or the key of a spec, that an axis sets.
struct AxisRole {
  const ScenarioKey* key = nullptr;
  SpecChange change{};     // without a value
  bool names_gpu = false;  // the GPU, or the machine that brings it
  bool gpu = false;        // the card or its links
  bool rates = false;      // of the card alone
  bool cluster = false;    // what joins GPUs, or who trains together
};

AxisRole role_of(const SweepAxis& axis, const Catalog& catalog) {
  AxisRole role{.key = find_scenario_key(axis.key())};
  if (role.key != nullptr) {
    role.cluster = role.key->of_cluster;
    return role;
  }
  role.change = scoped({parse_change(axis.key() + "=" + axis.value(0))}, catalog).front();
  const std::string& spec = role.change.spec;
  role.gpu = spec == "gpu" || spec == "link";
  role.rates = spec == "gpu" && role.change.path[0] != "bus" && role.change.path[0] != "nvlink";
  role.cluster = spec == "link" || spec == "machine" || spec == "cpu";
  return role;
}

}  // namespace

// Keeps the caches, cards and synchronization plans of recent points: axes that vary fast return to the same
// ones.
struct PointPredictor::State {
  static constexpr std::size_t kMostKept = 4'096;
  static constexpr std::size_t kMostOverlays = 16;

  struct Planned {
    std::optional<SyncPlan> plan;  // none for one GPU
    double cores = 0;              // cores_alone()
    bool made = false;
    std::string error;
  };

  const Sweep& sweep;
  SpecCache& specs;
  std::shared_ptr<StepCaches> all_steps;
  std::shared_ptr<SpecCache> steps{};  // of the model
  std::string entered{};
  std::vector<AxisRole> roles{};
  bool clusters = false;              // some axis is of them
  std::vector<std::string> values{};  // of the axes, at the point
  std::map<std::int64_t, std::unique_ptr<SpecCache>> overlays{};
  std::map<std::int64_t, std::shared_ptr<const GpuSpec>> cards{};
  std::map<std::int64_t, Planned> plans{};
  std::map<std::string, SpecTree> files{};  // of cards
  EstimateCache estimates{};
  // The last prediction, and the part of its point that changes of rates and of the cluster leave alone.
  std::optional<Prediction> prediction{};
  std::int64_t predicted = 0;

  State(const Sweep& swept, SpecCache& from, std::shared_ptr<StepCaches> shared)
      : sweep(swept), specs(from), all_steps(std::move(shared)) {
    if (!all_steps) all_steps = std::make_shared<StepCaches>(specs);
    bool named = false;  // "gpu" comes before "machine"
    for (const SweepAxis& axis : sweep.axes) {
      AxisRole role = role_of(axis, specs.catalog());
      clusters |= role.cluster && role.key != nullptr;
      role.names_gpu = axis.key() == "gpu" || (axis.key() == "machine" && !named);
      named |= role.names_gpu;
      roles.push_back(std::move(role));
    }
  }

  // The number of the point if all axes but those were at their first value.
  template <class Which>
  [[nodiscard]] std::int64_t part_of(std::int64_t point, Which which) const {
    std::int64_t part = 0, stride = 1;
    for (std::size_t a = sweep.axes.size(); a-- > 0;) {
      const auto size = static_cast<std::int64_t>(sweep.axes[a].size());
      if (which(roles[a])) part += point % size * stride;
      point /= size;
      stride *= size;
    }
    return part;
  }

  [[nodiscard]] Scenario scenario() const {
    Scenario scenario;
    for (std::size_t a = 0; a < values.size(); ++a) {
      if (roles[a].key != nullptr) roles[a].key->set(scenario, values[a]);
    }
    if (scenario.gpu.empty()) scenario.gpu = specs.machine(scenario.cluster.machine)->gpu;
    return scenario;
  }

  template <class Which>
  [[nodiscard]] SpecChanges changes(Which which) const {
    SpecChanges all;
    for (std::size_t a = 0; a < values.size(); ++a) {
      if (roles[a].key != nullptr || !which(roles[a])) continue;
      all.push_back(roles[a].change);
      all.back().value = values[a];
    }
    return all;
  }

  // The cache with the changes of all axes but those of the GPU and of what joins it to others.
  SpecCache& specs_at(std::int64_t point) {
    const auto other = [](const AxisRole& role) { return role.key == nullptr && !role.gpu && !role.cluster; };
    const SpecChanges made = changes(other);
    if (made.empty()) return *steps;
    if (overlays.size() > kMostOverlays) overlays.clear();
    auto& changed = overlays[part_of(point, other)];
    if (!changed) changed = std::make_unique<SpecCache>(*steps, made);
    return *changed;
  }

  GpuSpec read_card(const std::string& name, const SpecChanges& made) {
    const bool links = std::any_of(made.begin(), made.end(), [](const SpecChange& change) {
      return change.spec == "link" || change.path[0] == "bus" || change.path[0] == "nvlink";
    });
    if (links) return *SpecCache(specs, made).gpu(name);
    const auto file = files.find(name);
    const SpecTree& tree =
        file != files.end()
            ? file->second
            : files.emplace(name, read_spec_file(specs.catalog().find(Kind::gpu, name))).first->second;
    return changed_gpu(tree, *specs.gpu(name), made);
  }

  std::shared_ptr<const GpuSpec> card_at(std::int64_t point, const std::string& name,
                                         const SpecChanges& made) {
    if (cards.size() > kMostKept) cards.clear();
    auto& changed = cards[part_of(point, [](const AxisRole& role) { return role.gpu || role.names_gpu; })];
    if (!changed) changed = std::make_shared<const GpuSpec>(read_card(name, made));
    if (!differ_in_rates_only(*changed, *specs.gpu(name))) {
      throw UsageError(
          "another architecture, or arithmetic of another type, is another card; expected a file of its own");
    }
    return changed;
  }

  // The machine of the point's GPUs and the plan by which they synchronize gradients: the same for all
  // batches and rates of a card.
  const Planned& plan_at(std::int64_t point, const Scenario& wanted, const GpuSpec& gpu, SpecCache& changed) {
    if (plans.size() > kMostKept) plans.clear();
    const auto of_plan = [](const AxisRole& role) {
      const bool program = role.key != nullptr ? role.key->name == "framework" || role.key->name == "model" ||
                                                     role.key->name == "variant"
                                               : role.change.spec == "framework";
      return role.cluster || role.names_gpu || program || (role.gpu && !role.rates);
    };
    Planned& planned = plans[part_of(point, of_plan)];
    if (!planned.made) {
      planned.made = true;
      SpecCache joined(changed, changes([](const AxisRole& role) { return role.cluster || role.gpu; }));
      try {
        const auto framework = changed.framework(wanted.framework);
        const auto model = changed.model(wanted.model);
        const Variant& variant = find_variant(*model, wanted.variant, framework->family);
        planned.plan = resolve_sync(wanted.cluster, gpu, *framework, variant, joined);
        planned.cores = cores_alone(wanted.cluster, gpu, joined);
      } catch (const Error& wrong) {
        planned.error = wrong.what();
      }
    }
    if (!planned.error.empty()) throw UsageError(planned.error);
    return planned;
  }

  // The prediction for one GPU, with the card's changes.
  Prediction predict_alone(std::int64_t point, Scenario wanted, SpecCache& changed,
                           const std::shared_ptr<const GpuSpec>& new_card) {
    const std::int64_t base =
        part_of(point, [](const AxisRole& role) { return (!role.gpu && !role.cluster) || role.names_gpu; });
    std::optional<Prediction> last = std::exchange(prediction, std::nullopt);  // none if what follows throws
    if (!last || base != predicted) {
      wanted.cluster = {};
      last = predict(wanted, changed, &estimates);
      predicted = base;
    }
    if (clusters) last->sync.reset();
    return new_card ? with_rates(*std::move(last), new_card, &estimates) : *std::move(last);
  }

  // Lets go of what belongs to the model before.
  void enter(const std::string& next) {
    if (steps && next == entered) return;
    prediction.reset();
    overlays.clear();
    steps.reset();
    steps = all_steps->of(next);
    entered = next;
  }

  const Prediction& predict_at(std::int64_t point) {
    const Scenario wanted = scenario();
    enter(wanted.model);
    SpecCache& changed = specs_at(point);
    const SpecChanges of_gpu = changes([](const AxisRole& role) { return role.gpu; });
    std::shared_ptr<const GpuSpec> new_card;
    if (!of_gpu.empty()) new_card = card_at(point, wanted.gpu, of_gpu);
    Planned planned;
    if (wanted.cluster.ranks() > 1 || !wanted.cluster.machine.empty())
      planned = plan_at(point, wanted, new_card ? *new_card : *specs.gpu(wanted.gpu), changed);
    Prediction alone = predict_alone(point, wanted, changed, new_card);
    prediction = clusters
                     ? with_cluster(std::move(alone), wanted.cluster, std::move(planned.plan), planned.cores)
                     : std::move(alone);
    return *prediction;
  }
};

PointPredictor::PointPredictor(const Sweep& sweep, SpecCache& specs, std::shared_ptr<StepCaches> steps)
    : state_(std::make_unique<State>(sweep, specs, std::move(steps))) {}
PointPredictor::~PointPredictor() = default;
PointPredictor::PointPredictor(PointPredictor&&) noexcept = default;

SweepPoint PointPredictor::at(std::int64_t point) {
  State& s = *state_;
  SweepPoint result;
  s.values = values_at(s.sweep, point);
  result.values = s.values;
  const std::size_t shown = s.sweep.metrics.size();
  result.metrics.resize(shown + s.sweep.judged.size());
  try {
    const Prediction& p = s.predict_at(point);
    for (std::size_t m = 0; m < result.metrics.size(); ++m)
      result.metrics[m] = (m < shown ? s.sweep.metrics[m] : s.sweep.judged[m - shown])->value(p);
    result.status = p.fits ? "ok" : "out of memory";
  } catch (const Error& wrong) {
    result.status = wrong.what();
  }
  return result;
}

}  // namespace tbdsim
