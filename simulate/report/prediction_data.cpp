#include "simulate/report/prediction_data.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "hwspecs/base/number.h"
#include "simulate/prediction/metrics.h"
#include "simulate/report/prediction_notes.h"

namespace tbdsim {
namespace {

using Json = nlohmann::ordered_json;

Cell metric_cell(const Metric& metric, const Prediction& p) {
  const auto value = metric.value(p);
  return value ? number_cell(*value, "") : Cell{};
}

// True but for metrics of a target where there is none.
bool is_shown(const Metric& metric, bool target) { return target || metric.group != MetricGroup::target; }

// A whole number has no fraction in JSON.
Json json_number(double value) {
  const auto whole = as_whole_number(value);
  return whole ? Json(*whole) : Json(value);
}

Json json_of(const Loader& loader) {
  if (loader.sample_time == Seconds(0)) return {{"source", kSyntheticInput}};
  return {{"source", kRealInput},
          {"workers", json_number(loader.workers)},
          {"workers_of", loader.is_shared ? "machine" : "gpu"},
          {"sample_time", {{"value", json_number(loader.sample_time.si())}, {"unit", "s"}}}};
}

// The choices under the names of their options.
Json json_of(const TrainingChoices& choices) {
  const FineTuning& tuned = choices.fine_tuning;
  Json object = Json::object();
  if (!choices.optimizer.empty()) object["optimizer"] = choices.optimizer;
  if (choices.accumulate > 1) object["accumulate"] = choices.accumulate;
  if (tuned.rank > 0) object["lora"] = tuned.rank;
  if (!tuned.adapted.empty()) object["lora_layers"] = tuned.adapted;
  if (!tuned.frozen.empty()) object["freeze"] = tuned.frozen;
  if (choices.feature_maps)
    object["feature_maps"] = kFeatureMapsNames[static_cast<std::size_t>(*choices.feature_maps)];
  if (choices.optimizer_state)
    object["optimizer_state"] = kVariablesNames[static_cast<std::size_t>(*choices.optimizer_state)];
  if (choices.loss) object["loss"] = kLossKernelsNames[static_cast<std::size_t>(*choices.loss)];
  if (choices.attention)
    object["attention"] = kAttentionKernelsNames[static_cast<std::size_t>(*choices.attention)];
  return object;
}

Json json_of(const Prediction& p) {
  Json object{{"model", p.model->name},
              {"variant", p.scenario.variant},
              {"framework", p.framework->name},
              {"gpu", p.gpu->name},
              {"precision", p.scenario.precision},
              {"batch", p.scenario.tokens > 0 ? json_number(p.batch()) : Json(p.scenario.batch)},
              {"sample", p.model->sample},
              {"profile", p.profile->name},
              {"calibrated", p.profile->calibrated},
              {"fits", p.fits},
              {"bound", name_of(p.bound())},
              {"metrics", Json::object()},
              {"memory", Json::object()}};
  if (p.scenario.tokens > 0) object["tokens"] = p.scenario.tokens;
  if (p.dataset != nullptr) object["dataset"] = p.dataset->name;
  if (says_input(p)) object["input"] = json_of(p.loader);
  if (!p.scenario.training.empty()) object["training"] = json_of(p.scenario.training);
  const std::vector<std::string>& warnings = p.steps->front().step.warnings;
  if (!warnings.empty()) object["warnings"] = warnings;
  for (const Iteration& i : p.iterations) {
    if (i.bucket.length == 0) continue;
    object["lengths"].push_back({{"length", i.bucket.length},
                                 {"batch", i.batch},
                                 {"share_of_iterations", json_number(i.share)},
                                 {"iteration_time", {{"value", json_number(i.time().si())}, {"unit", "s"}}}});
  }
  constexpr std::string_view kMemoryPrefix = "memory_";
  for (const Metric& metric : metrics()) {
    if (!is_shown(metric, p.convergence != nullptr)) continue;
    const auto number = metric.value(p);
    const Json value{{"value", number ? json_number(*number) : Json()}, {"unit", unit_of(metric, p)}};
    if (metric.group == MetricGroup::memory && metric.name.starts_with(kMemoryPrefix)) {
      object["memory"][std::string(metric.name.substr(kMemoryPrefix.size()))] = value;
    } else {
      object["metrics"][std::string(metric.name)] = value;
    }
  }
  for (const auto& [name, bytes] :
       {std::pair("usable", p.usable_memory()), std::pair("nominal", p.gpu->memory_size)})
    object["gpu_memory"][name] = {{"value", json_number(bytes.si())}, {"unit", "B"}};
  const Interval interval = p.throughput_interval();
  object["metrics"]["throughput"]["low"] = json_number(interval.low);
  object["metrics"]["throughput"]["high"] = json_number(interval.high);
  return object;
}

}  // namespace

Table prediction_rows(std::span<const Prediction> predictions) {
  Table table;
  const bool target = std::any_of(predictions.begin(), predictions.end(),
                                  [](const Prediction& p) { return p.convergence != nullptr; });
  for (const char* key : {"model", "variant", "framework", "gpu", "precision", "batch", "profile",
                          "calibrated", "fits", "bound", "throughput_unit"}) {
    table.columns.push_back({key, key});
  }
  for (const Metric& metric : metrics()) {
    if (is_shown(metric, target))
      table.columns.push_back({std::string(metric.name), std::string(metric.name)});
  }
  for (const Prediction& p : predictions) {
    std::vector<Cell> row{
        text_cell(p.model->name),      text_cell(p.scenario.variant),       text_cell(p.framework->name),
        text_cell(p.gpu->name),        text_cell(p.scenario.precision),     number_cell(p.batch(), ""),
        text_cell(p.profile->name),    flag_cell(p.profile->calibrated),    flag_cell(p.fits),
        text_cell(name_of(p.bound())), text_cell(throughput_unit(*p.model))};
    for (const Metric& metric : metrics()) {
      if (is_shown(metric, target)) row.push_back(metric_cell(metric, p));
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

std::string predictions_json(std::span<const Prediction> predictions) {
  Json document{{"schema_version", kSchemaVersion}, {"predictions", Json::array()}};
  for (const Prediction& p : predictions) document["predictions"].push_back(json_of(p));
  return document.dump(2, ' ', false, Json::error_handler_t::replace);
}

}  // namespace tbdsim
