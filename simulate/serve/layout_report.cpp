#include "simulate/serve/layout_report.h"

#include <algorithm>
#include <array>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "hwspecs/base/error.h"
#include "hwspecs/base/quantity_text.h"
#include "hwspecs/base/suggest.h"
#include "simulate/job/layout_metrics.h"
#include "simulate/report/cells.h"
#include "simulate/report/html/chart_json.h"
#include "simulate/report/html/plan_page.h"

namespace tbdsim {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array<std::string_view, 7> kTiles = {
    "step_time", "tokens_per_second", "mfu", "exposed_share", "bubble_share", "memory", "rent"};

// A request of one page ends within a second: of so many layouts at most.
constexpr std::int64_t kMostGpus = 131'072;

// The layout by key of set_layout(), which the page's sliders take over.
Json layout_json(const ParallelLayout& l) {
  return {{"tp", l.tp},
          {"pp", l.pp},
          {"vp", l.vp},
          {"cp", l.cp},
          {"ep", l.ep},
          {"zero", l.zero},
          {"shard", l.shard},
          {"micro_batch", l.micro_batch},
          {"sequence_parallel", l.sequence_parallel ? "true" : "false"},
          {"recompute", kRecomputationNames[static_cast<std::size_t>(l.recompute)]},
          {"cp_exchange", kContextExchangeNames[static_cast<std::size_t>(l.context)]}};
}

std::string command_of(const JobRequest& r, const ParallelLayout& l) {
  std::string command = fmt::format("tbd-sim plan {} --gpu {} --gpus {} --global-batch {} --seq-len {}",
                                    r.model, r.gpu, r.job.gpus, r.job.global_batch, r.job.sequence);
  if (r.precision != "bf16") command += " --precision " + r.precision;
  if (r.stack != kDefaultStack) command += " --stack " + r.stack;
  if (!r.network.empty()) command += fmt::format(" --network '{}'", r.network);
  const Json asked = layout_json(l), usual = layout_json({});
  for (const auto& [key, value] : asked.items()) {
    if (value == usual[key]) continue;
    std::string flag = key;
    std::replace(flag.begin(), flag.end(), '_', '-');
    command += fmt::format(" --{} {}", flag, value.is_string() ? value.get<std::string>() : value.dump());
  }
  return command;
}

Json tiles_of(const JobPrediction& p) {
  Json tiles = Json::array();
  for (const std::string_view name : kTiles) {
    const LayoutMetric& metric = find_layout_metric(std::string(name));
    const std::optional<double> value = metric.value(p);
    if (!value) continue;
    std::string note(metric.metric.description);
    if (name == "step_time" || name == "tokens_per_second")
      note = fmt::format("80 %: +- {:.0f} %", kPercent * (p.factor() - 1));
    if (name == "memory") note = (p.fits() ? "fits into " : "does not fit into ") + to_text(p.job->usable());
    tiles.push_back({{"name", name},
                     {"text", metric_text(*value, std::string(metric.metric.unit))},
                     {"note", note},
                     {"wrong", name == "memory" && !p.fits()}});
  }
  return tiles;
}

Json numbers(std::initializer_list<std::int64_t> values) { return Json(std::vector<std::int64_t>(values)); }

Json powers(std::int64_t first, std::int64_t last) {
  Json all = Json::array();
  for (std::int64_t value = first; value <= last; value *= 2) all.push_back(value);
  return all;
}

Json slider(const char* key, const char* label, Json values, const char* unit = "") {
  return {{"key", key}, {"label", label}, {"values", std::move(values)}, {"unit", unit}};
}

Json list(const char* key, const char* label, Json options) {
  return {{"key", key}, {"label", label}, {"options", std::move(options)}};
}

}  // namespace

JobRequest usual_job() {
  JobRequest request;
  request.model = "llama3_8b";
  request.gpu = "h100_sxm";
  request.precision = "bf16";
  request.job = {.gpus = 64, .global_batch = 256, .sequence = 8192};
  return request;
}

JobRequest read_job_query(const QueryParameters& parameters) {
  JobRequest request = usual_job();
  std::set<std::string> seen;
  for (const auto& [key, value] : parameters) {
    if (!seen.insert(key).second) throw UsageError(in_quotes(key) + " is given twice; expected it once");
    set_job(request, key, value);
  }
  if (request.job.gpus > kMostGpus)
    throw UsageError(fmt::format("{} GPUs; expected at most {} on this page", request.job.gpus, kMostGpus));
  return request;
}

std::string layout_controls() {
  const JobRequest start = usual_job();
  Json stacks = Json::array();
  for (const Stack& stack : all_stacks()) stacks.push_back(stack.name);
  return Json{
      {"lists",
       {list("model", "model",
             {"llama3_8b", "llama3_70b", "llama3.1_405b", "llama2_7b", "llama2_70b", "mistral",
              "mixtral_8x7b", "mixtral_8x22b", "qwen3_32b", "qwen3_235b_a22b", "deepseek_v3", "gpt_oss_120b",
              "gpt3_175b", "opt_175b", "bloom_176b", "gpt2"}),
        list("gpu", "GPU",
             {"a100_sxm_40gb", "a100_sxm_80gb", "h100_sxm", "h200", "b200", "gb200", "b300", "gb300"}),
        list("precision", "precision", {"bf16", "fp8", "nvfp4", "fp16", "tf32"}),
        list("stack", "stack", stacks), list("recompute", "recomputation", Json(kRecomputationNames)),
        list("sequence_parallel", "sequence parallel", {"false", "true"}),
        list("cp_exchange", "context exchange", Json(kContextExchangeNames))}},
      {"sliders",
       {slider("gpus", "GPUs", powers(1, 16'384)),
        slider("global_batch", "global batch", powers(1, 8'192), "sequences"),
        slider("seq_len", "sequence", powers(512, 131'072), "tokens"), slider("tp", "tp", powers(1, 64)),
        slider("pp", "pp", numbers({1, 2, 4, 5, 8, 10, 16, 20, 32})),
        slider("vp", "vp", numbers({1, 2, 3, 4, 5, 6, 8, 10})), slider("cp", "cp", powers(1, 32)),
        slider("ep", "ep", powers(1, 256)), slider("micro_batch", "micro-batch", powers(1, 64)),
        slider("zero", "ZeRO", numbers({0, 1, 2, 3})),
        slider("shard", "shards over", numbers({0, 8, 16, 32, 64, 128})),
        slider("network", "network", numbers({0, 25, 50, 100, 200, 400, 800, 1600}), "Gbit/s")}},
      {"start",
       {{"model", start.model},
        {"gpu", start.gpu},
        {"precision", start.precision},
        {"stack", start.stack},
        {"gpus", start.job.gpus},
        {"global_batch", start.job.global_batch},
        {"seq_len", start.job.sequence},
        {"network", 0}}}}
      .dump();
}

std::string layout_report(const JobRequest& request, SpecCache& specs) {
  const ResolvedJob job = resolve_job(request, specs);
  PieceTable pieces(job.inputs);
  PlanPageData data{.job = &job};
  if (job.layout) {
    data.shown = predict_job(job, pieces);
  } else {
    data.plan = best_layouts(layouts_of(job), job.inputs, job.peak, job.usable());
    data.shown = with_interval(data.plan.best.empty() ? data.plan.smallest.at(0) : data.plan.best[0], job);
  }
  const ParallelLayout& layout = data.shown.layout.layout;
  data.memory = memory_by_stage(layout, pieces);
  const std::vector<Section> sections = plan_sections(data);
  const Json json{{"title", title_of(job)},          {"command", command_of(request, layout)},
                  {"layout", layout_json(layout)},   {"tiles", tiles_of(data.shown)},
                  {"html", sections_html(sections)}, {"charts", charts_json(sections)}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + '\n';
}

}  // namespace tbdsim
