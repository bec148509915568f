#include "simulate/sweep/sweep_spec.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "hwspecs/base/error.h"
#include "hwspecs/base/spec_reader.h"
#include "hwspecs/base/suggest.h"
#include "hwspecs/base/text_list.h"
#include "simulate/job/layout_metrics.h"
#include "simulate/prediction/scenario_keys.h"
#include "simulate/sweep/check.h"
#include "simulate/sweep/inputs.h"
#include "simulate/sweep/layout_sweep.h"

namespace tbdsim {
namespace {

constexpr const char* kUsual =
    "throughput,throughput_low,throughput_high,iteration_time,gpu_utilization,fp32_utilization,memory_total";
constexpr const char* kOfClusters = ",efficiency,exposed_communication";

constexpr const char* kUsualOfLayouts =
    "step_time,tokens_per_second,tokens_per_second_low,tokens_per_second_high,mfu,exposed_share,bubble_share,"
    "memory";
constexpr const char* kOfSearched =
    ",layout_dp,layout_tp,layout_pp,layout_vp,layout_cp,layout_ep,layout_zero,layout_micro_batch";

// True where the axes are those of jobs on clusters.
bool is_of_layouts(const SweepOptions& options) {
  return std::any_of(options.axes.begin(), options.axes.end(),
                     [](const auto& axis) { return axis.first == kKeyOfLayouts; });
}

FindMetric finder_for(bool of_layouts) {
  if (!of_layouts) return find_metric;
  return [](const std::string& name) -> const Metric& { return find_layout_metric(name).metric; };
}

std::vector<const Metric*> metrics_of(const std::string& names, FindMetric find) {
  std::vector<const Metric*> all;
  if (names.empty()) return all;
  for (const std::string& name : list_of(names)) all.push_back(&find(name));
  return all;
}

// A scalar, or a list as "a,b".
std::string values_of(const SpecNode& node) {
  if (!node.is_list()) return node.text();
  std::string text;
  for (const SpecNode& item : node.list()) text += (text.empty() ? "" : ",") + list_part(item.text());
  if (text.empty()) node.fail("has no value; expected at least one");
  return text;
}

// The order of axes: that of the keys, then changes as given.
std::vector<std::string> key_order(bool of_layouts) {
  if (!of_layouts) return scenario_key_names();
  std::vector<std::string> names;
  for (const JobKey& key : job_keys()) names.emplace_back(key.name);
  return names;
}

std::vector<SweepAxis> ordered(const SweepOptions& options) {
  std::vector<SweepAxis> axes;
  const std::vector<std::string> keys = key_order(is_of_layouts(options));
  for (const std::string& key : keys) {
    for (const auto& [name, values] : options.axes) {
      if (name == key) axes.emplace_back(name, values);
    }
  }
  for (const auto& [name, values] : options.axes) {
    if (std::find(keys.begin(), keys.end(), name) == keys.end()) axes.emplace_back(name, values);
  }
  return axes;
}

// The axis of that name if all its values are numbers that can be compared; null otherwise.
const SweepAxis* axis_of_numbers(const Sweep& sweep, const std::string& name) {
  for (const SweepAxis& axis : sweep.axes) {
    if (axis.key() != name) continue;
    const std::vector<std::string> ends = axis.ends();
    const auto is_number = [&](const std::string& value) {
      return number_of_axis(value).has_value() && is_relative(value) == is_relative(ends.front());
    };
    return std::all_of(ends.begin(), ends.end(), is_number) ? &axis : nullptr;
  }
  return nullptr;
}

Choosing choosing_of(const SweepOptions& options, const Sweep& sweep) {
  if (!options.best.empty() && !options.pareto.empty())
    throw UsageError("best and pareto are both given; expected one of them");
  const FindMetric find = finder_for(sweep.of_layouts);
  Choosing choosing{.by = {}, .axes = {}, .per = {}, .bounds = {}};
  const std::vector<std::string> front =
      options.pareto.empty() ? std::vector<std::string>{} : list_of(options.pareto);
  for (const std::string& name : front) {
    if (const SweepAxis* axis = axis_of_numbers(sweep, name))
      choosing.axes.push_back(axis->key());
    else
      choosing.by.push_back(&find(name));
  }
  if (!options.best.empty()) choosing.by = {&find(options.best)};
  if (!options.pareto.empty() && (choosing.by.empty() || choosing.by.size() + choosing.axes.size() < 2))
    throw UsageError(
        "pareto: expected two metrics or more, as throughput,memory_total,price, or a metric and "
        "axes of numbers");
  for (const std::string& bound : options.where) choosing.bounds.push_back(parse_bound(bound, find));
  if (options.per.empty()) return choosing;
  if (choosing.by.empty())
    throw UsageError("per says of what there is one best; expected --best or --pareto beside it");
  std::vector<std::string> known;
  for (const SweepAxis& axis : sweep.axes) known.push_back(axis.key());
  for (const std::string& name : list_of(options.per)) {
    if (std::find(known.begin(), known.end(), name) == known.end())
      throw UsageError("per: " + in_quotes(name) + " is no axis of this sweep" + did_you_mean(name, known) +
                       "; expected one of " + joined(known));
    choosing.per.push_back(name);
  }
  return choosing;
}

// The columns without --metrics: the usual ones, and those by which points are chosen.
std::vector<const Metric*> usual_metrics(const Sweep& sweep, const std::vector<const Metric*>& judged) {
  const bool clusters = std::any_of(sweep.axes.begin(), sweep.axes.end(), [](const SweepAxis& axis) {
    const ScenarioKey* key = find_scenario_key(axis.key());
    return key != nullptr && key->of_cluster;
  });
  const auto has = [&](auto which) { return std::any_of(sweep.axes.begin(), sweep.axes.end(), which); };
  const bool searched = has([](const SweepAxis& axis) { return axis.key() == "search"; }) ||
                        !has([](const SweepAxis& axis) { return is_layout_key(axis.key()); });
  const std::string names = sweep.of_layouts ? std::string(kUsualOfLayouts) + (searched ? kOfSearched : "")
                                             : std::string(kUsual) + (clusters ? kOfClusters : "");
  std::vector<const Metric*> metrics = metrics_of(names, finder_for(sweep.of_layouts));
  for (const Metric* metric : judged) {
    if (std::find(metrics.begin(), metrics.end(), metric) == metrics.end()) metrics.push_back(metric);
  }
  return metrics;
}

// True where a metric is of a run to a target, and no axis names one.
bool asks_for_target(const Sweep& sweep) {
  if (std::any_of(sweep.axes.begin(), sweep.axes.end(),
                  [](const SweepAxis& axis) { return axis.key() == "target"; }))
    return false;
  const auto of_target = [](const Metric* metric) { return metric->group == MetricGroup::target; };
  return std::any_of(sweep.metrics.begin(), sweep.metrics.end(), of_target) ||
         std::any_of(sweep.judged.begin(), sweep.judged.end(), of_target);
}

// Throws where points are chosen by a price that no GPU of the sweep has.
void require_prices(const Sweep& sweep, SpecCache& specs) {
  std::vector<std::string> gpus;
  for (const SweepAxis& axis : sweep.axes) {
    if (axis.key().starts_with("gpu.") && axis.key().find(".price") != std::string::npos) return;
    if (axis.key() == "gpu") gpus = axis.ends();
  }
  for (const Metric* metric : sweep.judged) {
    if (!metric->unit.starts_with("USD") || gpus.empty()) continue;
    const bool bought = metric->name == "price";
    const bool known = std::any_of(gpus.begin(), gpus.end(), [&](const std::string& name) {
      const GpuSpec& gpu = *specs.gpu(name);
      return bought ? gpu.price.has_value() : gpu.price_per_hour.has_value();
    });
    if (known) continue;
    const char* key = bought ? "price" : "price_per_hour";
    throw UsageError(
        fmt::format("{}: no file of these GPUs ({}) has a {}; expected one, as --set "
                    "gpu.{}.{}='{}'",
                    metric->name, joined(gpus), key, gpus.front(), key, bought ? "1000 USD" : "0.5 USD/h"));
  }
}

// Every name that the catalogue has for an axis, as a list; the values themselves where they are not `all` or
// the axis is of no catalogue.
std::string with_all_named(const std::string& axis, const std::string& values, const Catalog& catalog) {
  static constexpr std::pair<std::string_view, Kind> kNamed[] = {
      {"model", Kind::model},     {"gpu", Kind::gpu},         {"framework", Kind::framework},
      {"machine", Kind::machine}, {"dataset", Kind::dataset}, {"target", Kind::target}};
  const auto* const kind = std::ranges::find(kNamed, axis, &std::pair<std::string_view, Kind>::first);
  if (values != "all" || kind == std::end(kNamed)) return values;
  std::string names;
  for (const std::string& name : catalog.names(kind->second))
    names += (names.empty() ? "" : ",") + list_part(name);
  return names;
}

}  // namespace

SweepOptions read_sweep(const std::filesystem::path& file) {
  const SpecTree tree = read_spec_file(file);
  SweepOptions options;
  SpecNode(tree).map([&](SpecMap& m) {
    for (const bool of_layouts : {false, true}) {
      for (const std::string& key : key_order(of_layouts)) {
        if (of_layouts && find_scenario_key(key) != nullptr) continue;  // read already
        if (const auto node = m.find(key)) options.axes.emplace_back(key, values_of(*node));
      }
    }
    if (const auto set = m.find("set")) {
      set->map([&](SpecMap& changes) {
        for (const auto& [name, mark, node] : changes.all()) {
          if (name.find('.') == std::string::npos)
            throw SpecError(mark, in_quotes(name) + " is no key of a spec; expected as gpu.memory_bandwidth");
          options.axes.emplace_back(name, values_of(node));
        }
      });
    }
    const auto text = [&](const char* key, std::string& value) {
      if (const auto node = m.find(key)) value = values_of(*node);
    };
    text("metrics", options.metrics);
    text("best", options.best);
    text("pareto", options.pareto);
    text("per", options.per);
    if (const auto where = m.find("where")) {
      for (const SpecNode& bound : where->list()) options.where.push_back(bound.text());
    }
  });
  return options;
}

SweepRun sweep_run(const SweepOptions& given, RowFormat format, SpecCache& specs) {
  SweepOptions options = given;
  const bool of_layouts = is_of_layouts(options);
  for (auto& [key, values] : options.axes) {
    if (of_layouts && key == kLengthSize) key = "seq_len";  // the same flag
    values = with_all_named(key, values, specs.catalog());
  }
  SweepRun run{.sweep = {.axes = ordered(options), .of_layouts = of_layouts},
               .choosing = {},
               .format = format,
               .take = {}};
  run.choosing = choosing_of(options, run.sweep);
  run.sweep.judged = judged_by(run.choosing);
  run.sweep.metrics = options.metrics.empty() ? usual_metrics(run.sweep, run.sweep.judged)
                                              : metrics_of(options.metrics, finder_for(of_layouts));
  if (asks_for_target(run.sweep)) {
    SweepOptions with_target = options;
    with_target.axes.emplace_back("target", std::string(kUsualTarget));
    run.sweep.axes = ordered(with_target);
  }
  of_layouts ? check_layouts(run.sweep, specs) : check(run.sweep, specs);
  require_prices(run.sweep, specs);
  run.end = points_of(run.sweep);
  return run;
}

std::string description(const SweepRun& run, const Catalog& catalog) {
  std::string text = fmt::format("tbd-sim {}\npoints: {} to {}\nformat: {}\n", TBDSIM_VERSION, run.first,
                                 run.end, run.format == RowFormat::csv ? "csv" : "jsonl");
  for (const SweepAxis& axis : run.sweep.axes) text += axis.key() + ": " + axis.text() + "\n";
  for (const Metric* metric : run.sweep.metrics) text += "metric: " + std::string(metric->name) + "\n";
  return text + input_lines(run.sweep, catalog);
}

}  // namespace tbdsim
