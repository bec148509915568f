#include "simulate/sweep/point_predictor.h"

#include <algorithm>
#include <map>

#include "costmodel/residuals/fast/estimate_cache.h"
#include "hwspecs/base/error.h"
#include "hwspecs/base/spec_reader.h"
#include "simulate/prediction/cluster_machine.h"
#include "simulate/prediction/scenario_keys.h"

namespace tbdsim {
namespace {

// What an axis sets: a part of the scenario, or a key of a spec.
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
  role.change = resolved({parse_change(axis.key() + "=" + axis.value(0))}, catalog).front();
  const std::string& spec = role.change.spec;
  role.gpu = spec == "gpu" || spec == "link";
  role.rates = spec == "gpu" && role.change.path[0] != "bus" && role.change.path[0] != "nvlink";
  role.cluster = spec == "link" || spec == "machine" || spec == "cpu";
  return role;
}

}  // namespace

std::int64_t points_of(const Sweep& sweep) {
  std::int64_t points = 1;
  for (const SweepAxis& axis : sweep.axes) points *= static_cast<std::int64_t>(axis.size());
  return points;
}

std::vector<std::string> values_at(const Sweep& sweep, std::int64_t point) {
  std::vector<std::string> values(sweep.axes.size());
  for (std::size_t a = values.size(); a-- > 0;) {
    const auto size = static_cast<std::int64_t>(sweep.axes[a].size());
    values[a] = sweep.axes[a].value(point % size);
    point /= size;
  }
  return values;
}

// The libraries, cards and exchanges made lately are kept: axes that vary fast come back to the same ones.
struct PointPredictor::State {
  static constexpr std::size_t kMostKept = 4'096;
  static constexpr std::size_t kMostLibraries = 16;

  struct Planned {
    std::optional<SyncPlan> exchange;
    std::string error;
  };

  const Sweep& sweep;
  SpecCache& specs;
  std::vector<AxisRole> roles{};
  bool clusters = false;              // some axis is of them
  std::vector<std::string> values{};  // of the axes, at the point
  std::map<std::int64_t, std::unique_ptr<SpecCache>> libraries{};
  std::map<std::int64_t, std::shared_ptr<const GpuSpec>> cards{};
  std::map<std::int64_t, Planned> plans{};
  std::map<std::string, SpecTree> files{};  // of cards
  EstimateCache estimates{};
  std::int64_t predicted = -1;  // number of the point without its changes of the GPU, by one GPU
  std::optional<Prediction> prediction{};
  std::shared_ptr<const GpuSpec> card{};  // of the prediction

  State(const Sweep& swept, SpecCache& from) : sweep(swept), specs(from) {
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
    if (scenario.gpu.empty()) scenario.gpu = specs.machine(scenario.cluster.machine).gpu;
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

  // As changed by all axes but those of the GPU and of what joins it to others.
  SpecCache& library_at(std::int64_t point) {
    const auto other = [](const AxisRole& role) { return role.key == nullptr && !role.gpu && !role.cluster; };
    const SpecChanges made = changes(other);
    if (made.empty()) return specs;
    if (libraries.size() > kMostLibraries) {
      predicted = -1;  // it refers to one of them
      libraries.clear();
    }
    auto& changed = libraries[part_of(point, other)];
    if (!changed) changed = std::make_unique<SpecCache>(specs, made);
    return *changed;
  }

  GpuSpec read_card(const std::string& name, const SpecChanges& made) {
    const bool links = std::any_of(made.begin(), made.end(), [](const SpecChange& change) {
      return change.spec == "link" || change.path[0] == "bus" || change.path[0] == "nvlink";
    });
    if (links) return SpecCache(specs, made).gpu(name);
    const auto file = files.find(name);
    const SpecTree& tree =
        file != files.end()
            ? file->second
            : files.emplace(name, read_spec_file(specs.catalog().find(Kind::gpu, name))).first->second;
    return changed_gpu(tree, specs.gpu(name), made);
  }

  std::shared_ptr<const GpuSpec> card_at(std::int64_t point, const std::string& name,
                                         const SpecChanges& made) {
    if (cards.size() > kMostKept) cards.clear();
    auto& changed = cards[part_of(point, [](const AxisRole& role) { return role.gpu || role.names_gpu; })];
    if (!changed) changed = std::make_shared<const GpuSpec>(read_card(name, made));
    if (!differ_in_rates_only(*changed, specs.gpu(name))) {
      throw UsageError(
          "another architecture, or arithmetic of another type, is another card; expected a file of its own");
    }
    return changed;
  }

  // How the point's GPUs exchange gradients: the same for all batches and rates of a card.
  const SyncPlan& plan_at(std::int64_t point, const Scenario& wanted, const GpuSpec& gpu,
                          SpecCache& changed) {
    if (plans.size() > kMostKept) plans.clear();
    const auto of_plan = [](const AxisRole& role) {
      const bool framework =
          role.key != nullptr ? role.key->name == "framework" : role.change.spec == "framework";
      return role.cluster || role.names_gpu || framework || (role.gpu && !role.rates);
    };
    Planned& planned = plans[part_of(point, of_plan)];
    if (!planned.exchange && planned.error.empty()) {
      SpecCache joined(changed, changes([](const AxisRole& role) { return role.cluster || role.gpu; }));
      try {
        planned.exchange = plan_sync(wanted.cluster, gpu, changed.framework(wanted.framework),
                                     machine_for(wanted.cluster, gpu, joined));
      } catch (const Error& wrong) {
        planned.error = wrong.what();
      }
    }
    if (!planned.exchange) throw UsageError(planned.error);
    return *planned.exchange;
  }

  // By one GPU, with the card's changes.
  void predict_alone(std::int64_t point, Scenario wanted, SpecCache& changed,
                     const std::shared_ptr<const GpuSpec>& new_card) {
    const std::int64_t base =
        part_of(point, [](const AxisRole& role) { return (!role.gpu && !role.cluster) || role.names_gpu; });
    wanted.cluster = {};
    if (base != predicted || !prediction) {
      predicted = -1;
      prediction = predict(wanted, changed, &estimates);
    }
    predicted = -1;  // unless the next lines end well
    if (clusters) prediction->exchange.reset();
    if (new_card) {
      prediction = with_rates(*std::move(prediction), *new_card);
      card = new_card;
    }
    predicted = base;
  }

  const Prediction& predict_at(std::int64_t point) {
    const Scenario wanted = scenario();
    SpecCache& changed = library_at(point);
    const SpecChanges of_gpu = changes([](const AxisRole& role) { return role.gpu; });
    std::shared_ptr<const GpuSpec> new_card;
    if (!of_gpu.empty()) new_card = card_at(point, wanted.gpu, of_gpu);
    std::optional<SyncPlan> exchange;
    if (wanted.cluster.ranks() > 1)
      exchange = plan_at(point, wanted, new_card ? *new_card : specs.gpu(wanted.gpu), changed);
    predict_alone(point, wanted, changed, new_card);
    if (clusters) prediction = with_sync(*std::move(prediction), exchange);
    return *prediction;
  }
};

PointPredictor::PointPredictor(const Sweep& sweep, SpecCache& specs)
    : state_(std::make_unique<State>(sweep, specs)) {}
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
