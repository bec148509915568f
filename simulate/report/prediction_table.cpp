#include "simulate/report/prediction_table.h"

#include <algorithm>
#include <map>
#include <ostream>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "hwspecs/base/number.h"
#include "hwspecs/base/quantity_text.h"
#include "hwspecs/base/suggest.h"
#include "simulate/prediction/metrics.h"
#include "simulate/prediction/pipe_utilization.h"
#include "simulate/prediction/utilization.h"
#include "simulate/report/cells.h"
#include "simulate/report/kernel_sources.h"
#include "simulate/report/prediction_label.h"
#include "simulate/report/training_notes.h"

namespace tbdsim {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kNoteWidth = 100;
constexpr std::ptrdiff_t kTensorColumn = 7;  // behind FP32

std::string legend(bool tensor) {
  return fmt::format(
      "+-%: 80 % of measured throughputs are expected so near; time: of an iteration; GPU, FP32,{} CPU: "
      "utilization in %, of the iteration, of the single-precision peak while the GPU is active,{} of {} "
      "cores "
      "(an estimate); par. to total: GPU memory at its peak, in GiB (parameters, their gradients, feature "
      "maps, workspace, dynamic; total with the CUDA context, ! where it does not fit); bound: what limits "
      "most of the time.",
      tensor ? " TC," : "", tensor ? " of tensor cores' peak while kernels run," : "", kHostCores);
}

std::string gib_text(double gib) { return fmt::format("{:.{}f}", gib, gib >= 10 ? 1 : 2); }

Cell utilization_cell(std::optional<double> ratio) { return ratio ? bare_percent_cell(*ratio, 0) : Cell{}; }

double tensor_share(const Prediction& p) { return pipe_use(p).value_or(PipeUse{}).tensor; }

// `tensor`: with a column for tensor cores.
std::vector<Cell> table_row(std::span<const Prediction> predictions, const Prediction& p, bool tensor) {
  const Activity activity = activity_of(p);
  const MemoryPlan& m = p.memory;
  const auto memory = [](Bytes bytes) { return number_cell(bytes.si(), gib_text(in_unit(bytes, "GiB"))); };
  const std::string total = gib_text(in_unit(m.total(), "GiB"));
  std::vector<Cell> row{text_cell(label_among(predictions, p)),
                        text_cell(p.framework->name),
                        text_cell(three_digits(p.throughput()) + " " + throughput_unit(*p.model)),
                        bare_percent_cell(p.interval_factor() - 1, 0),
                        text_cell(to_text(p.iteration_time())),
                        utilization_cell(gpu_utilization(activity)),
                        utilization_cell(fp32_utilization(activity, *p.gpu)),
                        utilization_cell(cpu_utilization(activity)),
                        memory(m.use[MemoryCategory::weights]),
                        memory(m.use[MemoryCategory::weight_gradients]),
                        memory(m.use[MemoryCategory::feature_maps]),
                        memory(m.use[MemoryCategory::workspace]),
                        memory(m.use[MemoryCategory::dynamic]),
                        number_cell(m.total().si(), p.fits ? total : total + "!"),
                        text_cell(name_of(p.bound()))};
  if (tensor) row.insert(row.begin() + kTensorColumn, bare_percent_cell(tensor_share(p), 0));
  return row;
}

// Keys whose source begins with "estimate:".
std::vector<std::string> estimates_among(const Sources& sources) {
  std::vector<std::string> keys;
  for (const auto& [key, source] : sources) {
    if (source.starts_with("estimate:")) keys.push_back(key);
  }
  return keys;
}

// The largest batch that fits, for predictions that do not fit.
std::vector<std::string> fit_notes(std::span<const Prediction> predictions) {
  std::vector<std::string> notes;
  for (const Prediction& p : predictions) {
    if (p.fits) continue;
    const auto largest = p.largest_batch();
    const std::int64_t length = p.iterations[p.largest].bucket.length;
    const std::string of_length = length == 0 ? "" : fmt::format(", of length {}", length);
    const std::string fitting = largest == 0
                                    ? "no batch fits"
                                    : fmt::format("the largest batch that fits is {}{}", largest, of_length);
    for (const std::string& line : wrapped(
             fmt::format("! {} on {} needs {} of {}: {}; its throughput is hypothetical", p.model->name,
                         p.framework->name, to_text(p.memory.total()), to_text(p.usable_memory()), fitting),
             kNoteWidth)) {
      notes.push_back(line);
    }
  }
  return notes;
}

// The number of samples in a batch of tokens.
std::string token_note(const Prediction& p) {
  const auto [fewest, most] =
      std::minmax_element(p.iterations.begin(), p.iterations.end(),
                          [](const Iteration& a, const Iteration& b) { return a.batch < b.batch; });
  return fmt::format("{} tokens on each side, padding included, are {} to {} {}s.", p.scenario.tokens,
                     fewest->batch, most->batch, p.model->sample);
}

// A note for each kind of sample, "images (alexnet, resnet50)", and for each model whose batch is limited.
std::vector<std::string> batch_notes(std::span<const Prediction> predictions) {
  std::map<std::string, std::vector<std::string>> models;  // sample -> models
  std::set<std::string> seen;
  std::vector<std::string> notes;
  for (const Prediction& p : predictions) {
    if (!seen.insert(p.model->name).second) continue;
    models[p.model->sample + "s"].push_back(p.model->name);
    if (p.batch_limited) {
      notes.push_back(fmt::format("{} trains {} {} at a time, whatever the batch.", p.model->name,
                                  p.scenario.batch, p.model->sample));
    }
  }
  if (predictions[0].scenario.tokens > 0) {
    notes.insert(notes.begin(), token_note(predictions[0]));
  } else if (models.size() == 1) {
    notes.insert(notes.begin(), fmt::format("The batch counts {}.", models.begin()->first));
  } else {
    std::vector<std::string> sorts;
    for (const auto& [sample, names] : models) sorts.push_back(fmt::format("{} ({})", sample, joined(names)));
    const std::vector<std::string> lines = wrapped("The batch counts " + joined(sorts) + ".", kNoteWidth);
    notes.insert(notes.begin(), lines.begin(), lines.end());
  }
  return notes;
}

// Notes on models with lengths: those with a mean over several, and the length of the others.
std::vector<std::string> length_notes(std::span<const Prediction> predictions) {
  std::vector<std::string> means;
  std::vector<std::string> single;
  for (const Prediction& p : predictions) {
    const std::string name = p.model->name + " on " + p.framework->name;
    const std::int64_t length = p.iterations[0].bucket.length;
    if (p.iterations.size() > 1) {
      means.push_back(name);
    } else if (length > 0) {
      single.push_back(fmt::format("{} ({})", name, length));
    }
  }
  std::string text;
  if (!means.empty())
    text = joined(means) +
           ": mean over the lengths of the data set, memory of the longest; --seq-len fixes one. ";
  if (!single.empty()) text += "Of one length: " + joined(single) + ".";
  return text.empty() ? std::vector<std::string>{} : wrapped(text, kNoteWidth);
}

// True if the scenario says where samples come from.
bool says_input(const Prediction& p) {
  const SampleInput& input = p.scenario.input;
  return !input.source.empty() || input.workers || input.sample_time || input.storage ||
         input.copies != InputCopies::uncounted;
}

// "8 workers of a machine, 4.00 ms each".
std::string loader_text(const Prediction& p) {
  const Loader& loader = p.loader;
  const SampleInput& input = p.scenario.input;
  std::string more;
  if (input.storage) more += ", read at " + to_text(*input.storage);
  if (input.copies != InputCopies::uncounted)
    more += fmt::format(", copied in {} ({})", to_text(p.iterations[p.largest].input_copy),
                        kInputCopiesNames[static_cast<std::size_t>(input.copies)]);
  if (loader.sample_time == Seconds(0))
    return (more.empty() ? "made up on the GPU" : "of unknown time to decode") + more;
  const std::string each = to_text(loader.sample_time) + " each";
  if (loader.in_loop()) return "decoded in the training loop, " + each + more;
  return fmt::format("decoded by {:.0f} worker{} {}, {}{}", loader.workers, loader.workers == 1 ? "" : "s",
                     loader.is_shared ? "of a machine" : "for each GPU", each, more);
}

// Notes on the loaders, where the scenarios say something of them.
std::vector<std::string> input_notes(std::span<const Prediction> predictions) {
  std::vector<std::string> notes;
  for (const Prediction& p : predictions) {
    if (!says_input(p)) continue;
    const std::string note = fmt::format("Samples, on {}: {}.", p.framework->name, loader_text(p));
    if (std::find(notes.begin(), notes.end(), note) == notes.end()) notes.push_back(note);
  }
  return notes;
}

// True for the workers of a loader that the prediction does not have.
bool is_of_another_loader(const std::string& key, const Prediction& p) {
  return (key == "input_threads" || key == "loader_threads") && key != p.loader.key;
}

// Notes on constants of the frameworks and the data set that are estimates; only where one model is shown.
std::vector<std::string> estimate_notes(std::span<const Prediction> predictions) {
  const auto several = [&](const Prediction& p) { return p.model != predictions[0].model; };
  if (std::any_of(predictions.begin(), predictions.end(), several)) return {};
  std::vector<std::string> notes;
  for (const Prediction& p : predictions) {
    std::vector<std::string> keys = estimates_among(p.framework->launch_model.sources);
    std::erase_if(keys, [&](const std::string& key) { return is_of_another_loader(key, p); });
    if (p.iterations[0].decode > Seconds(0) && !p.scenario.input.sample_time) {
      for (const std::string& key : estimates_among(p.dataset->sources))
        keys.push_back(key + " of " + p.dataset->name);
    }
    if (keys.empty()) continue;
    const auto lines =
        wrapped(fmt::format("Estimates, on {}: {}.", p.framework->name, joined(keys)), kNoteWidth);
    notes.insert(notes.end(), lines.begin(), lines.end());
  }
  return notes;
}

bool trains_all(const Prediction& p) { return p.scenario.training.fine_tuning == FineTuning{}; }

// Figures that people quote of models that train on tokens.
std::vector<std::string> mfu_notes(std::span<const Prediction> predictions) {
  std::vector<std::string> notes;
  for (const Prediction& p : predictions) {
    const auto model = find_metric("mfu").value(p);
    const auto hardware = find_metric("hfu").value(p);
    if (p.model->throughput.unit != "tokens" || !model || !hardware) continue;
    const std::string note = fmt::format(
        "{} on {}: MFU {:.1f} % ({} x multiply-adds of a forward pass), HFU {:.1f} % (FLOP that run), of the "
        "peak of {}.",
        p.model->name, p.framework->name, 100 * *model, trains_all(p) ? "6" : "6, 4 where frozen,",
        100 * *hardware, name_of(p.precision->weight_product_math()));
    for (const std::string& line : wrapped(note, kNoteWidth)) notes.push_back(line);
  }
  return notes;
}

// The notes of captured steps, each once: warnings of the capture, operators without a lowering.
std::vector<std::string> step_notes(std::span<const Prediction> predictions) {
  std::set<std::string> seen;
  std::vector<std::string> notes;
  for (const Prediction& p : predictions) {
    for (const std::string& warning : p.steps->front().step.warnings) {
      const std::string note = p.model->name + ": " + warning;
      if (!seen.insert(note).second) continue;
      const auto lines = wrapped(note + ".", kNoteWidth);
      notes.insert(notes.end(), lines.begin(), lines.end());
    }
  }
  return notes;
}

// A note for each variant that other frameworks train than the one it is predicted on.
std::vector<std::string> variant_notes(std::span<const Prediction> predictions) {
  std::vector<std::string> notes;
  for (const Prediction& p : predictions) {
    const std::vector<std::string>& own = p.variant->frameworks;
    if (own.empty() || std::find(own.begin(), own.end(), p.framework->family) != own.end()) continue;
    notes.push_back(fmt::format("{} {} is trained by {}: on {} it is hypothetical.", p.model->name,
                                p.variant->name, joined(own), p.framework->name));
  }
  return notes;
}

std::string batch_title(const Prediction& p) {
  if (p.scenario.tokens > 0) return fmt::format("{} tokens a batch", p.scenario.tokens);
  return fmt::format("batch {}", p.batch_limited ? p.batch_asked : p.scenario.batch);
}

Table wide_table(std::span<const Prediction> predictions) {
  const Prediction& first = predictions[0];
  Table table;
  table.preface = {fmt::format("{}, {}, {}", first.gpu->title, batch_title(first), first.scenario.precision),
                   "kernel times: " + kernel_sources(predictions), ""};
  for (const char* header : {"model", "framework", "throughput", "+-%", "time", "GPU", "FP32", "CPU", "par.",
                             "grad", "maps", "work", "dyn.", "total", "bound"}) {
    const std::string_view name = header;
    const bool right = name != "model" && name != "framework" && name != "bound";
    table.columns.push_back({header, header, right});
  }
  const bool tensor = std::any_of(predictions.begin(), predictions.end(),
                                  [](const Prediction& p) { return tensor_share(p) > 0; });
  if (tensor) table.columns.insert(table.columns.begin() + kTensorColumn, {"TC", "TC", true});
  for (const Prediction& p : predictions) table.rows.push_back(table_row(predictions, p, tensor));
  for (const auto& notes :
       {mfu_notes(predictions), batch_notes(predictions), training_notes(predictions, kNoteWidth),
        length_notes(predictions), input_notes(predictions), variant_notes(predictions),
        step_notes(predictions), estimate_notes(predictions)}) {
    table.notes.insert(table.notes.end(), notes.begin(), notes.end());
  }
  for (const std::string& line : wrapped(legend(tensor), kNoteWidth)) table.notes.push_back(line);
  const auto notes = fit_notes(predictions);
  table.notes.insert(table.notes.end(), notes.begin(), notes.end());
  return table;
}

Cell metric_cell(const Metric& metric, const Prediction& p) {
  const auto value = metric.value(p);
  return value ? number_cell(*value, "") : Cell{};
}

// True but for metrics of a target where there is none.
bool is_shown(const Metric& metric, bool target) { return target || metric.group != MetricGroup::target; }

Table csv_table(std::span<const Prediction> predictions) {
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

void write_predictions(std::ostream& out, std::span<const Prediction> predictions, Format format) {
  if (format == Format::json) {
    Json document{{"schema_version", kSchemaVersion}, {"predictions", Json::array()}};
    for (const Prediction& p : predictions) document["predictions"].push_back(json_of(p));
    out << document.dump(2, ' ', false, Json::error_handler_t::replace) << '\n';
    return;
  }
  const Table table = format == Format::table ? wide_table(predictions) : csv_table(predictions);
  write_tables(out, std::span(&table, 1), format);
}

}  // namespace tbdsim
