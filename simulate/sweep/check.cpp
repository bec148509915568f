#include "simulate/sweep/check.h"

#include <algorithm>

#include <fmt/format.h>

#include "hwspecs/base/error.h"
#include "hwspecs/base/suggest.h"
#include "hwspecs/synthetic_machine.h"
#include "simulate/framework/sync_method.h"
#include "simulate/job/job_request.h"
#include "simulate/prediction/cluster_machine.h"
#include "simulate/prediction/scenario_keys.h"
#include "simulate/workload/precision_choice.h"

namespace tbdsim {
namespace {

const SweepAxis* axis_of(const Sweep& sweep, std::string_view key) {
  const auto found = std::find_if(sweep.axes.begin(), sweep.axes.end(),
                                  [&](const SweepAxis& axis) { return axis.key() == key; });
  return found == sweep.axes.end() ? nullptr : &*found;
}

void require_axes(const Sweep& sweep) {
  for (const char* key : {"model", "framework", "gpu"}) {
    const bool machine = std::string_view(key) == "gpu" && axis_of(sweep, "machine") != nullptr;
    if (axis_of(sweep, key) == nullptr && !machine)
      throw UsageError(fmt::format("a sweep needs a {0}; expected --{0} with one or several", key));
  }
  const bool batch = axis_of(sweep, "batch") != nullptr;
  if (batch == (axis_of(sweep, "tokens") != nullptr)) {
    throw UsageError(batch ? "batch and tokens are both given; expected one of them"
                           : "a sweep needs a batch; expected --batch with one or several, as 8,16 or 1:200");
  }
  for (const SweepAxis& axis : sweep.axes) {
    const auto twice = std::count_if(sweep.axes.begin(), sweep.axes.end(),
                                     [&](const SweepAxis& other) { return other.key() == axis.key(); });
    if (twice > 1)
      throw UsageError(axis.key() + " is given twice; expected one axis with all its values, as 8,16,32");
  }
}

bool has_more_than_one(const Sweep& sweep, std::string_view key) {
  const SweepAxis* axis = axis_of(sweep, key);
  return axis != nullptr && (axis->size() > 1 || axis->value(0) != "1");
}

// Throws for axes of how GPUs are joined where every point has one GPU, and for several machines without a
// network.
void require_clusters(const Sweep& sweep) {
  const bool machines = has_more_than_one(sweep, "machines");
  if (machines && axis_of(sweep, "machine") == nullptr && axis_of(sweep, "network") == nullptr)
    throw UsageError(
        "machines are several, and nothing joins them; expected --network or a --machine with one");
  if (machines || has_more_than_one(sweep, "gpus")) return;
  for (const SweepAxis& axis : sweep.axes) {
    const ScenarioKey* key = find_scenario_key(axis.key());
    const bool joins = key != nullptr ? key->of_cluster && key->name != "machine" &&
                                            key->name != "machines" && key->name != "gpus"
                                      : axis.key().starts_with("machine.") || axis.key().starts_with("cpu.");
    if (joins)
      throw UsageError(axis.key() +
                       " is of several GPUs, and every point has one; expected --gpus or --machines");
  }
}

// The scenario of the first value of every axis.
Scenario first_scenario(const Sweep& sweep) {
  Scenario scenario;
  for (const SweepAxis& axis : sweep.axes) {
    if (const ScenarioKey* key = find_scenario_key(axis.key())) key->set(scenario, axis.value(0));
  }
  return scenario;
}

// Reads what a value of an axis names. Throws for a name that is not there.
struct NameCheck {
  std::string_view key;
  void (*read)(SpecCache& specs, const std::string& name);
};

constexpr NameCheck kNameChecks[] = {
    {"model", [](SpecCache& specs, const std::string& name) { (void)specs.model(name); }},
    {"framework", [](SpecCache& specs, const std::string& name) { (void)specs.framework(name); }},
    {"precision", [](SpecCache&, const std::string& name) { (void)precision_for(ModelFile{}, name); }},
    {"dataset", [](SpecCache& specs, const std::string& name) { (void)specs.dataset(name); }},
    {"profile", [](SpecCache& specs, const std::string& name) { (void)specs.profile(name); }},
    {"gpu", [](SpecCache& specs, const std::string& name) { (void)specs.gpu(name); }},
    {"machine", [](SpecCache& specs, const std::string& name) { (void)specs.machine(name); }},
    {"network",
     [](SpecCache& specs, const std::string& name) { require_network(with_space(name), specs.catalog()); }},
    {"exchange", [](SpecCache&, const std::string& name) { (void)find_sync_method(name); }},
};

// The check of a key whose values are names; none for the others.
const NameCheck* find_name_check(std::string_view key) {
  const auto* const found = std::find_if(std::begin(kNameChecks), std::end(kNameChecks),
                                         [&](const NameCheck& check) { return check.key == key; });
  return found == std::end(kNameChecks) ? nullptr : found;
}

// Reads the specs that the change affects, once.
void check_change(const Sweep& sweep, const SpecChange& change, SpecCache& specs) {
  if (change.spec == "machine" && change.path.front() == "gpu")
    throw UsageError("machine.gpu is what --gpu says; expected that");
  SpecCache changed(specs, {change});
  const std::string only = changed.changes().back().only;
  for (const char* key : {"gpu", "framework", "model", "dataset", "machine"}) {
    const SweepAxis* names = axis_of(sweep, key);
    if (names == nullptr) continue;
    const bool one = !only.empty() && change.spec == key;
    const std::vector<std::string> all = names->ends();
    if (one && std::find(all.begin(), all.end(), only) == all.end()) {
      throw UsageError(in_quotes(key_text(change)) + " is of " + only +
                       "; expected one of the sweep's: " + joined(all));
    }
    find_name_check(key)->read(changed, one ? only : all.front());
  }
  const bool joins = change.spec == "machine" || change.spec == "cpu" || change.spec == "link";
  if (!joins || axis_of(sweep, "machine") != nullptr) return;
  const Scenario first = first_scenario(sweep);
  (void)machine_for(first.cluster, *changed.gpu(first.gpu), changed);
}

// Throws for what is wrong at every point.
void check_axis(const Sweep& sweep, const SweepAxis& axis, SpecCache& specs) {
  const ScenarioKey* key = find_scenario_key(axis.key());
  if (key == nullptr && is_job_key(axis.key()))
    throw UsageError(axis.key() + " is of jobs on clusters; expected --global-batch beside it");
  if (key == nullptr && axis.key().find('.') == std::string::npos)
    throw UsageError("unknown axis " + in_quotes(axis.key()) +
                     did_you_mean(axis.key(), scenario_key_names()) + "; expected one of " +
                     joined(scenario_key_names()) + ", or a key of a spec as gpu.sm_count");
  const NameCheck* const names = find_name_check(axis.key());
  Scenario any;
  for (const std::string& value : axis.ends()) {
    if (key == nullptr) {
      check_change(sweep, parse_change(axis.key() + "=" + value), specs);
    } else if (names == nullptr) {
      key->set(any, value);
    } else {
      names->read(specs, value);
    }
  }
}

}  // namespace

void check(const Sweep& sweep, SpecCache& specs) {
  require_axes(sweep);
  require_clusters(sweep);
  double points = 1;
  for (const SweepAxis& axis : sweep.axes) points *= axis.size();
  if (points > static_cast<double>(kMostPoints)) {
    throw UsageError(
        fmt::format("the axes make {:.0f} points; expected at most {}: fewer values, or larger steps", points,
                    kMostPoints));
  }
  for (const SweepAxis& axis : sweep.axes) check_axis(sweep, axis, specs);
}

}  // namespace tbdsim
