#include <fstream>
#include <map>
#include <memory>

#include <fmt/format.h>

#include "hwspecs/base/csv.h"
#include "hwspecs/base/error.h"
#include "hwspecs/base/number.h"
#include "hwspecs/base/suggest.h"
#include "simulate/cli/commands/command.h"
#include "simulate/cli/commands/options.h"
#include "simulate/layout/decoder_of_graph.h"
#include "simulate/layout/layout_reader.h"
#include "simulate/plan/search.h"
#include "simulate/report/export/pipeline_trace.h"
#include "simulate/report/plan_table.h"
#include "simulate/report/plan_target_table.h"

namespace tbdsim {
namespace {

// Its versions of libraries choose the kernels; other properties of a stack are in simulate/plan/stack.cpp.
constexpr const char* kFrameworkOfLibraries = "pytorch_ngc_2_8";
constexpr std::int64_t kMostTokens = 100'000'000;

struct PlanOptions {
  std::string model;
  std::string table;  // rows to predict instead
  std::string gpu;
  std::string machine;
  std::string network;
  std::string oversubscription;
  std::string leaf;
  std::string gpus = "8";
  std::string global_batch = "1";
  std::string sequence;
  std::string precision = "bf16";
  std::string stack{kDefaultStack};
  std::string profile;
  std::string layout_file;
  std::string trace;                               // file
  std::string target;                              // quality to train to; empty: none is asked for
  std::map<std::string, std::string> layout;       // by key of set_layout()
  std::map<std::string, std::string> differences;  // of the stack, by key of set_stack()
  OutputOptions output;
};

// A job whose texts are resolved, with all that it refers to.
struct ResolvedPlan {
  std::shared_ptr<const GpuSpec> gpu;
  std::shared_ptr<const Calibration> calibration;
  PlanInputs inputs;
  FlopsPerSecond peak;
};

MathType math_of_products(const std::string& precision) {
  if (precision == "bf16") return MathType::bf16;
  if (precision == "fp16") return MathType::fp16;
  if (precision == "fp8") return MathType::fp8;
  if (precision == "tf32") return MathType::tf32;
  const std::vector<std::string> known = {"bf16", "fp16", "fp8", "tf32"};
  throw UsageError(fmt::format("--precision {}; expected one of {}{}", in_quotes(precision), joined(known),
                               did_you_mean(precision, known)));
}

// The machine named, or the one that is usual for the GPU.
std::string machine_of(const std::string& machine, const std::string& gpu, const SpecCache& specs) {
  if (!machine.empty()) return machine;
  const std::pair<std::string_view, std::string_view> usual[] = {
      {"a100_sxm_40gb", "dgx_a100"}, {"a100_sxm_80gb", "dgx_a100"}, {"h100_sxm", "dgx_h100"},
      {"h200", "dgx_h200"},          {"b200", "dgx_b200"},          {"gb200", "gb200_nvl72"},
      {"b300", "dgx_b200"},          {"gb300", "gb200_nvl72"},      {"h800_sxm", "dgx_h100"},
      {"a800_sxm_80gb", "dgx_a100"}};
  for (const auto& [card, name] : usual) {
    if (card == gpu) return std::string(name);
  }
  throw UsageError(fmt::format("--machine is missing: no machine is usual for {}; expected one of {}", gpu,
                               joined(specs.catalog().names(Kind::machine))));
}

ResolvedPlan resolve_plan(const PlanOptions& o, const DecoderShape& shape, SpecCache& specs) {
  ResolvedPlan r;
  std::string gpu = o.gpu;
  if (gpu.empty()) {
    if (o.machine.empty())
      throw UsageError("--gpu is missing; expected one of 'tbd-sim list gpus', or --machine");
    gpu = specs.machine(o.machine)->gpu;
  }
  r.gpu = specs.gpu(gpu);
  r.calibration = specs.calibration({gpu, r.gpu}, o.profile,
                                    {kFrameworkOfLibraries, specs.framework(kFrameworkOfLibraries)});
  MachineSpec machine = *specs.machine(machine_of(o.machine, gpu, specs));
  if (!o.network.empty()) {
    const std::vector<int> below = machine.networks.empty() ? std::vector<int>{} : machine.networks[0].below;
    machine.networks.assign(1, {network_named(o.network, specs.catalog(), specs.changes()), below});
  }
  PlanInputs& in = r.inputs;
  in.shape = shape;
  in.job = {.gpus = whole_number("--gpus", o.gpus, kMostRanks),
            .global_batch = whole_number("--global-batch", o.global_batch, kMostRanks),
            .sequence = whole_number("--seq-len", o.sequence, kMostTokens)};
  in.stack = stack_named(o.stack);
  for (const auto& [key, value] : o.differences) {
    if (!value.empty()) set_stack(in.stack, key, value);
  }
  in.precision.math = math_of_products(o.precision);
  if (in.precision.math != MathType::fp8) in.precision.attention = in.precision.math;
  in.calibration = r.calibration.get();
  in.fabric = fabric_of(machine, *r.gpu, in.job.gpus);
  if (!o.leaf.empty()) in.fabric.leaf = whole_number("--leaf-gpus", o.leaf, kMostRanks);
  if (!o.oversubscription.empty()) {
    const auto times = parse_number(o.oversubscription);
    if (!times || *times < 1 || *times > 1000)
      throw UsageError(fmt::format("--oversubscription {}; expected a number from 1 to 1000",
                                   in_quotes(o.oversubscription)));
    in.fabric.oversubscription = *times;
    if (in.fabric.leaf == 0) in.fabric.leaf = in.fabric.domain;
  }
  r.peak = rate_of(*r.gpu, in.precision.math).peak;
  return r;
}

// The decoder that the model is; sets the length of its sequences where none was asked for.
DecoderShape decoder_named(PlanOptions& options, SpecCache& specs) {
  const std::shared_ptr<const ModelFile> file = specs.model(options.model);
  const Model model = build_model(*file, find_variant(*file, "", "pytorch"));
  DecoderShape shape = decoder_of(model);
  shape.name = options.model;
  if (options.sequence.empty()) {
    const auto length = model.sizes.find(std::string(kLengthSize));
    options.sequence = length == model.sizes.end() ? "2048" : length->second.text;
  }
  return shape;
}

ParallelLayout layout_of(const PlanOptions& o) {
  ParallelLayout layout;
  if (!o.layout_file.empty()) layout = read_layout(o.layout_file);
  for (const auto& [key, value] : o.layout) {
    if (!value.empty()) set_layout(layout, key, value);
  }
  return layout;
}

bool has_layout(const PlanOptions& o) {
  if (!o.layout_file.empty()) return true;
  return std::any_of(o.layout.begin(), o.layout.end(),
                     [](const auto& entry) { return !entry.second.empty(); });
}

// Sets what a column of a table means; false for a column that means nothing here.
bool set_column(PlanOptions& o, DecoderShape& shape, const std::string& column, const std::string& value) {
  const auto is_one_of = [&](std::span<const std::string_view> keys) {
    return std::find(keys.begin(), keys.end(), column) != keys.end();
  };
  if (is_one_of(shape_keys())) return set_shape(shape, column, value), true;
  if (is_one_of(layout_keys())) return o.layout[column] = value, true;
  if (is_one_of(stack_keys())) return o.differences[column] = value, true;
  const std::pair<std::string_view, std::string*> texts[] = {{"gpu", &o.gpu},
                                                             {"machine", &o.machine},
                                                             {"network", &o.network},
                                                             {"gpus", &o.gpus},
                                                             {"global_batch", &o.global_batch},
                                                             {"seq_len", &o.sequence},
                                                             {"precision", &o.precision},
                                                             {"stack", &o.stack}};
  for (const auto& [name, text] : texts) {
    if (name == column) return *text = value, true;
  }
  return false;
}

std::vector<std::string> predict_row(const PlanOptions& common, const std::vector<std::string>& columns,
                                     const std::vector<std::string>& row, SpecCache& specs) {
  PlanOptions o = common;
  DecoderShape shape;
  std::vector<std::string> results(layout_result_columns().size());
  std::string status = "ok";
  try {
    for (std::size_t i = 0; i < columns.size(); ++i) {
      if (!row[i].empty()) (void)set_column(o, shape, columns[i], row[i]);
    }
    shape = completed(shape);
    const ResolvedPlan r = resolve_plan(o, shape, specs);
    PieceTable pieces(r.inputs);
    results = layout_results(predict_layout(legal_layout(layout_of(o), shape, r.inputs.job), pieces, r.peak));
  } catch (const Error& wrong) {
    status = wrong.what();
  }
  std::vector<std::string> all = row;
  all.insert(all.end(), results.begin(), results.end());
  all.push_back(status);
  return all;
}

void run_table(const PlanOptions& options, SpecCache& specs, std::ostream& out, const Progress& progress) {
  std::ifstream in = open_input(options.table);
  CsvReader reader(in, options.table);
  std::vector<std::string> names = reader.columns();
  for (const std::string_view added : layout_result_columns()) names.emplace_back(added);
  names.emplace_back("status");
  write_output(options.output, out, [&](std::ostream& to) {
    write_csv_row(to, names);
    std::vector<std::string> row;
    std::size_t rows = 0;
    while (reader.next(row)) {
      write_csv_row(to, predict_row(options, reader.columns(), row, specs));
      progress(++rows);
    }
  });
}

void run(PlanOptions options, SpecCache& specs, std::ostream& out, const Progress& progress) {
  if (!options.table.empty()) return run_table(options, specs, out, progress);
  if (options.model.empty()) throw UsageError("the model is missing; expected one, a file, or --table");
  const Format format = format_of(options.output);
  const DecoderShape shape = decoder_named(options, specs);
  const ResolvedPlan r = resolve_plan(options, shape, specs);
  const Job& job = r.inputs.job;
  const std::string title =
      fmt::format("{} on {} {}, {} sequences of {}, {}, {}", shape.name, job.gpus, r.gpu->title,
                  job.global_batch, job.sequence, options.precision, r.inputs.stack.name);
  std::vector<Table> tables;
  const auto add_target = [&](std::span<const LayoutPrediction> layouts) {
    if (options.target.empty()) return;
    const auto to = specs.convergence(specs.model(options.model)->name, options.target);
    tables.push_back(plan_target_table(layouts, r.inputs, *to));
  };
  if (has_layout(options)) {
    PieceTable pieces(r.inputs);
    const ParallelLayout layout = legal_layout(layout_of(options), shape, job);
    const LayoutPrediction p = predict_layout(layout, pieces, r.peak);
    if (!options.trace.empty()) {
      AtomicFile file(options.trace);
      write_pipeline_trace(file.stream(), p, job);
      file.commit();
    }
    tables.push_back(layout_table(p, r.inputs, title, r.gpu->usable_memory));
    add_target(std::span(&p, 1));
  } else {
    SearchSpace space;
    space.selective = !r.inputs.stack.fused_attention;
    space.operators = !r.inputs.stack.joined_products;  // torch's selective checkpointing
    const std::vector<ParallelLayout> layouts = legal_layouts(shape, job, r.inputs.fabric.domain, space);
    if (layouts.empty())
      throw UsageError(
          fmt::format("no layout of {} divides {} GPUs and a global batch of {}; expected a batch that "
                      "has a common divisor with the GPUs",
                      shape.name, job.gpus, job.global_batch));
    const Plan plan = best_layouts(layouts, r.inputs, r.peak, r.gpu->usable_memory);
    tables = plan_tables(plan, r.inputs, title, r.gpu->usable_memory);
    add_target(plan.best);
  }
  write_output(options.output, out, [&](std::ostream& to) { write_tables(to, tables, format); });
}

}  // namespace

Command add_plan(CLI::App& root) {
  const auto options = std::make_shared<PlanOptions>();
  CLI::App* app = root.add_subcommand(
      "plan", "the fastest ways to lay out the training of a decoder on many GPUs, or one of them in detail");
  app->add_option("model", options->model, "a decoder, or a YAML file");
  app->add_option("--gpu", options->gpu, "a GPU, or a YAML file");
  app->add_option("--machine", options->machine, "what joins the GPUs (default: what is usual for them)");
  app->add_option("--network", options->network,
                  "between machines, instead of the machine's: a link, a file or a rate");
  app->add_option("--oversubscription", options->oversubscription,
                  "of the network's tree above its leaf switches: 2 for half of the bandwidth (default 1)");
  app->add_option("--leaf-gpus", options->leaf, "GPUs below one leaf switch (default: those of a machine)");
  app->add_option("--gpus", options->gpus, "GPUs in all (default 8)");
  app->add_option("--global-batch", options->global_batch, "sequences in a step");
  app->add_option("--seq-len", options->sequence, "tokens in a sequence");
  app->add_option("--precision", options->precision,
                  "of the products of layers: bf16 (default), fp16, fp8, tf32");
  app->add_option("--stack", options->stack, "megatron (default), megatron_deepspeed, fsdp, fsdp_compiled");
  app->add_option(
      "--target", options->target,
      "of 'tbd-sim list targets': also time, cost and energy until a layout reaches it; usual: the "
      "model's usual one");
  app->add_option("--layout", options->layout_file,
                  "a YAML file with a layout, to predict instead of searching");
  app->add_option("--trace", options->trace,
                  "with a layout: a file for ui.perfetto.dev, a thread for each stage");
  app->add_option("--table", options->table, "a CSV of layouts to predict, a row each");
  const auto add = [&](std::map<std::string, std::string>& texts, const std::string& key, const char* help) {
    std::string flag = "--" + key;
    std::replace(flag.begin() + 2, flag.end(), '_', '-');
    app->add_option(flag, texts[key], help);
  };
  for (const std::string_view key : stack_keys())
    add(options->differences, std::string(key), "unlike the stack's default: true, false or a number");
  const std::pair<const char*, const char*> keys[] = {
      {"dp", "replicas (default: what the GPUs allow)"},
      {"tp", "tensor-parallel ranks"},
      {"pp", "stages of the pipeline"},
      {"vp", "chunks of layers on each stage (interleaved)"},
      {"cp", "context-parallel ranks"},
      {"ep", "expert-parallel ranks"},
      {"zero", "ZeRO stage: 1 optimizer state, 2 gradients, 3 parameters (FSDP)"},
      {"shard", "ranks over which ZeRO divides; the others are copies (HSDP)"},
      {"reshard", "with --zero 3: gather parameters again for the backward pass: true (default), false"},
      {"sequence_parallel", "true: norms and residuals are divided over the tensor-parallel ranks"},
      {"micro_batch", "sequences in one pass"},
      {"uneven", "true: stages may differ by one layer, the first have more"},
      {"recompute", "none, selective, operators or full"},
      {"schedule", "1f1b (default), gpipe or zero_bubble"}};
  for (const auto& [key, help] : keys) add(options->layout, key, help);
  add_profile_option(*app, options->profile);
  add_output_options(*app, options->output);
  return {app,
          [options](SpecCache& specs, std::ostream& out, const Progress& progress) {
            run(*options, specs, out, progress);
          },
          true};
}

}  // namespace tbdsim
