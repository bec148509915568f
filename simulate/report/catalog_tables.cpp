#include "simulate/report/catalog_tables.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "costmodel/profile/profile.h"
#include "graphs/convergence.h"
#include "graphs/critical_batch.h"
#include "graphs/dataset.h"
#include "graphs/layers/layer_types.h"
#include "graphs/model.h"
#include "graphs/suite.h"
#include "hwspecs/base/quantity_text.h"
#include "hwspecs/base/suggest.h"
#include "hwspecs/cpu_spec.h"
#include "hwspecs/gpu_spec.h"
#include "hwspecs/machine_spec.h"
#include "simulate/analysis/presets.h"
#include "simulate/framework/framework_spec.h"
#include "simulate/job/layout_metrics.h"
#include "simulate/prediction/metrics.h"
#include "simulate/workload/precision_choice.h"

namespace tbdsim {
namespace {

template <Dimension D>
Cell quantity_cell(const Quantity<D>& quantity) {
  return number_cell(quantity.si(), to_text(quantity));
}

// "fp32 fp16*": a star marks what is only stored.
std::string arithmetic(const GpuSpec& gpu) {
  std::string text;
  for (std::size_t i = 0; i < kMathTypeCount; ++i) {
    if (!gpu.math[i] && !gpu.computes_in[i]) continue;
    text += fmt::format("{}{}{}", text.empty() ? "" : " ", kMathTypeNames[i], gpu.computes_in[i] ? "*" : "");
  }
  return text;
}

Table list_gpus(const Catalog& catalog) {
  Table table;
  table.columns = {{"name", "name"},
                   {"title", "GPU"},
                   {"architecture", ""},
                   {"sm_count", "SMs", true},
                   {"fp32_peak", "fp32 peak", true},
                   {"memory_size", "memory", true},
                   {"usable_memory", "", true},
                   {"memory_bandwidth", "bandwidth", true},
                   {"price_per_hour", ""},
                   {"math", "arithmetic"}};
  for (const std::string& name : catalog.names(Kind::gpu)) {
    const GpuSpec gpu = read_gpu(catalog.find(Kind::gpu, name), catalog);
    table.rows.push_back(
        {text_cell(name), text_cell(gpu.title), text_cell(gpu.architecture), count_cell(gpu.sm_count),
         quantity_cell(rate_of(gpu, MathType::fp32).peak), quantity_cell(gpu.memory_size),
         quantity_cell(gpu.usable_memory), quantity_cell(gpu.memory_bandwidth),
         gpu.price_per_hour ? quantity_cell(*gpu.price_per_hour) : Cell{}, text_cell(arithmetic(gpu))});
  }
  table.notes = {"fp16*: stored as fp16, computed in fp32. Peaks count a multiply-add as 2 flop."};
  return table;
}

Table list_cpus(const Catalog& catalog) {
  Table table;
  table.columns = {{"name", "name"},
                   {"title", "CPU"},
                   {"core_count", "cores", true},
                   {"max_clock", "clock", true},
                   {"memory_type", "memory"},
                   {"memory_bandwidth", "bandwidth", true},
                   {"llc_size", "cache", true}};
  for (const std::string& name : catalog.names(Kind::cpu)) {
    const CpuSpec cpu = read_cpu(catalog.find(Kind::cpu, name));
    table.rows.push_back({text_cell(name), text_cell(cpu.title), count_cell(cpu.core_count),
                          quantity_cell(cpu.max_clock), text_cell(cpu.memory_type),
                          quantity_cell(cpu.memory_bandwidth), quantity_cell(cpu.llc_size)});
  }
  table.notes = {"Of one socket."};
  return table;
}

Table list_links(const Catalog& catalog) {
  Table table;
  table.columns = {{"name", "name"},
                   {"title", "link"},
                   {"bandwidth", "bandwidth", true},
                   {"achievable", "achievable", true},
                   {"latency", "latency", true}};
  for (const std::string& name : catalog.names(Kind::link)) {
    const LinkSpec link = read_link(catalog.find(Kind::link, name));
    table.rows.push_back({text_cell(name), text_cell(link.title), quantity_cell(link.bandwidth),
                          quantity_cell(achievable(link)), quantity_cell(link.latency)});
  }
  table.notes = {"Bandwidths are of one link in each direction."};
  return table;
}

// "nvlink2, 16 pairs", "nvlink3 x 12".
std::string nvlink_text(const MachineSpec& machine) {
  if (!machine.nvlink) return "";
  const NvLink& nvlink = *machine.nvlink;
  if (nvlink.to_switch > 0) return fmt::format("{} x {}", nvlink.link.name, nvlink.to_switch);
  return fmt::format("{}, {} pairs", nvlink.link.name, nvlink.pairs.size());
}

Table list_machines(const Catalog& catalog) {
  Table table;
  table.columns = {{"name", "name"},
                   {"title", ""},
                   {"gpus", "GPUs", true},
                   {"gpu", "GPU"},
                   {"root_ports", ""},
                   {"peer_access", "peers below"},
                   {"nvlink", "NVLink"},
                   {"networks", "networks"},
                   {"machines", "machines", true}};
  for (const std::string& name : catalog.names(Kind::machine)) {
    const MachineSpec machine = read_machine(catalog.find(Kind::machine, name), catalog);
    std::vector<std::string> networks;
    for (const Network& network : machine.networks) networks.push_back(network.link.name);
    table.rows.push_back({text_cell(name), text_cell(machine.title), count_cell(machine.gpus),
                          text_cell(machine.gpu), count_cell(static_cast<double>(machine.root_ports.size())),
                          text_cell(kPeerAccessNames[static_cast<std::size_t>(machine.peer_access)]),
                          text_cell(nvlink_text(machine)), text_cell(joined(networks)),
                          machine.machines ? count_cell(*machine.machines) : Cell{}});
  }
  table.notes = {"nvlink3 x 12: a switch joins all GPUs, each by 12 links."};
  return table;
}

Table list_models(const Catalog& catalog) {
  Table table;
  table.columns = {{"name", "name"},       {"title", "model"},           {"sample", "batch of"},
                   {"variant", "variant"}, {"frameworks", "trained by"}, {"description", "what it is"}};
  for (const std::string& name : catalog.names(Kind::model)) {
    const ModelFile model = read_model_file(catalog.find(Kind::model, name), {}, catalog.folder(Kind::model));
    for (const Variant& variant : model.variants) {
      table.rows.push_back({text_cell(name), text_cell(model.title), text_cell(model.sample + "s"),
                            text_cell(variant.name), text_cell(joined(variant.frameworks)),
                            text_cell(variant.description)});
    }
    for (const Variant& member : model.family) {
      table.rows.push_back({text_cell(member.name), text_cell(model.title), text_cell(model.sample + "s"),
                            Cell{}, text_cell(joined(member.frameworks)), text_cell(member.description)});
    }
  }
  return table;
}

Table list_suites(const Catalog& catalog) {
  Table table;
  table.columns = {{"name", "name"}, {"title", "suite"}, {"models", "models"}};
  for (const std::string& name : catalog.names(Kind::suite)) {
    const Suite suite = read_suite(catalog.find(Kind::suite, name));
    std::vector<std::string> models;  // each once
    for (const SuiteModel& model : suite.models) {
      if (std::find(models.begin(), models.end(), model.model) == models.end()) models.push_back(model.model);
    }
    table.rows.push_back({text_cell(name), text_cell(suite.title), text_cell(joined(models))});
  }
  return table;
}

Table list_datasets(const Catalog& catalog) {
  Table table;
  table.columns = {{"name", "name"},
                   {"title", "data set"},
                   {"sample", "sample"},
                   {"samples", "in an epoch", true},
                   {"mean_length", "mean length", true},
                   {"longest", ""},
                   {"length_unit", "length in"}};
  for (const std::string& name : catalog.names(Kind::dataset)) {
    const Dataset set = read_dataset(catalog.find(Kind::dataset, name));
    const double mean = mean_length(set.lengths);
    const bool varies = !set.lengths.empty();
    table.rows.push_back({text_cell(name), text_cell(set.title), text_cell(set.sample),
                          set.samples ? count_cell(static_cast<double>(*set.samples)) : Cell{},
                          varies ? number_cell(mean, fmt::format("{:.1f}", mean)) : Cell{},
                          varies ? count_cell(static_cast<double>(set.lengths.back().up_to)) : Cell{},
                          text_cell(set.length_unit)});
  }
  return table;
}

Table list_frameworks(const Catalog& catalog) {
  Table table;
  table.columns = {{"name", "name"},
                   {"title", "framework"},
                   {"layout", "layout"},
                   {"workspace_limit", "workspace limit", true}};
  for (const std::string& name : catalog.names(Kind::framework)) {
    const Framework framework =
        read_framework(catalog.find(Kind::framework, name), {}, catalog.folder(Kind::framework));
    table.rows.push_back({text_cell(name), text_cell(framework.title),
                          text_cell(kLayoutNames[static_cast<std::size_t>(framework.lowering.layout)]),
                          quantity_cell(framework.workspace_limit)});
  }
  return table;
}

Table list_changes(const Catalog& catalog) {
  Table table;
  table.columns = {{"name", "name"}, {"title", "what if"}};
  for (const std::string& name : catalog.names(Kind::change)) {
    const Preset changes = read_preset(catalog.find(Kind::change, name));
    table.rows.push_back({text_cell(name), text_cell(changes.title)});
  }
  table.notes = {"For 'tbd-sim whatif --changes'; 'tbd-sim show' says what each sets."};
  return table;
}

Table list_profiles(const Catalog& catalog) {
  Table table;
  table.columns = {{"name", "name"},
                   {"title", "kernel times"},
                   {"calibrated", "calibrated"},
                   {"blocks", "blocks", true},
                   {"own_blocks", "own", true},
                   {"not_converged", "not converged", true},
                   {"at_bound", "at a bound", true}};
  for (const std::string& name : catalog.names(Kind::profile)) {
    const Profile profile = read_profile(catalog.find(Kind::profile, name), catalog);
    const auto count = [&](bool (*counts)(const ProfileBlock&)) {
      std::ptrdiff_t sum = 0;
      for (const auto& blocks : profile.families) sum += std::count_if(blocks.begin(), blocks.end(), counts);
      return count_cell(static_cast<double>(sum));
    };
    table.rows.push_back({text_cell(name), text_cell(profile.title), flag_cell(profile.calibrated),
                          count([](const ProfileBlock&) { return true; }),
                          count([](const ProfileBlock& block) { return block.own; }),
                          count([](const ProfileBlock& block) { return !block.converged; }),
                          count([](const ProfileBlock& block) { return !block.at_bound.empty(); })});
  }
  table.notes = {
      "own: blocks measured on the GPU itself. 'tbd-sim show profile NAME' lists a profile's blocks."};
  return table;
}

Table list_targets(const Catalog& catalog) {
  Table table;
  table.columns = {{"name", "name"},
                   {"model", "model"},
                   {"target", "target"},
                   {"optimizer", ""},
                   {"epochs", "epochs", true},
                   {"critical_batch", "crit. batch", true},
                   {"smallest_batch", "from", true},
                   {"largest_batch", "to batch", true},
                   {"runs", "runs", true}};
  for (const std::string& name : catalog.names(Kind::target)) {
    const Convergence target = read_convergence(catalog.find(Kind::target, name));
    if (!target.is_measured()) {
      table.rows.push_back({text_cell(name), text_cell(target.model), text_cell(target.target),
                            text_cell(target.optimizer), none_cell(), none_cell(), none_cell(), none_cell(),
                            count_cell(0)});
      continue;
    }
    int runs = 0;
    for (const ConvergencePoint& point : target.points) runs += point.runs;
    const double epochs = target.law.minimum;
    const bool told = tells_critical_batch(target.law, target.points.front().batch, target.largest_batch());
    table.rows.push_back(
        {text_cell(name), text_cell(target.model), text_cell(target.target), text_cell(target.optimizer),
         number_cell(epochs, epochs < 1000 ? fmt::format("{:.3g}", epochs) : fmt::format("{:.0f}", epochs)),
         told ? count_cell(std::round(target.law.critical_batch)) : none_cell(),
         count_cell(target.points.front().batch), count_cell(target.largest_batch()), count_cell(runs)});
  }
  table.notes = {
      "epochs: at a small batch; crit. batch: at which there are twice as many; for 'tbd-sim tta'.",
      "crit. batch -: the runs do not tell it: they are at one batch, or the law's is at a limit of the fit.",
      "epochs -: no run to that target is known; 'tbd-sim tta MODEL --epochs N' takes those that you give."};
  return table;
}

Table list_metrics(const Catalog&) {
  Table table;
  table.columns = {{"name", "name"}, {"unit", "unit"}, {"description", "what it is"}};
  for (const Metric& metric : metrics()) {
    table.rows.push_back({text_cell(metric.name), text_cell(metric.unit), text_cell(metric.description)});
  }
  std::vector<std::string_view> of_layouts;
  for (const LayoutMetric& metric : layout_metrics()) of_layouts.push_back(metric.metric.name);
  table.notes = wrapped(fmt::format("Metrics of layouts on a cluster ('tbd-sim sweep --global-batch'): {}.",
                                    fmt::join(of_layouts, ", ")),
                        kScreenWidth);
  return table;
}

Table list_precisions(const Catalog&) {
  Table table;
  table.columns = {{"name", "name"}, {"description", "what it is"}};
  for (const Precision& precision : kPrecisions) {
    table.rows.push_back({text_cell(precision.name), text_cell(precision.description)});
  }
  table.rows.push_back(
      {text_cell(kDefaultPrecision),
       text_cell(
           "as captured, or in fp32: what the framework makes of fp32 where a program does not say, tf32 or "
           "tf32_convolutions on GPUs that have it (key default_precision)")});
  return table;
}

Table list_layers(const Catalog&) {
  Table table;
  table.columns = {{"name", "type"}, {"description", "what it is, with its keys (and their defaults)"}};
  for (const LayerType& type : layer_types()) {
    table.rows.push_back({text_cell(type.name), text_cell(type.description)});
  }
  for (const char* note :
       {"Keys of every layer: name; type; from, the layer or layers it reads (without it the one before); "
        "frozen, "
        "tied_to, per_step, whole.",
        "Names after '$': the model's parameters; within a block those that it declares and, undeclared, "
        "$name, the "
        "name of its use, and $in, the layer that the use reads; within a repeat its index. ${name} where "
        "more "
        "letters follow.",
        "parameters are seen by blocks, graphs and training; sizes by the inputs of graphs alone, so that "
        "other ones "
        "need no new graph. --seq-len, --image-size and --rois set either; so does 'parameters' of a "
        "variant.",
        "optimizer of a variant: one of 'tbd-sim list optimizers'; none updates nothing."}) {
    for (std::string& line : wrapped(note, kScreenWidth)) table.notes.push_back(std::move(line));
  }
  return table;
}

Table list_optimizers(const Catalog&) {
  Table table;
  table.columns = {{"name", "name"},
                   {"state_bytes", "state B", true},
                   {"flops", "flop", true},
                   {"rule", "for each parameter"}};
  for (const Optimizer& optimizer : kOptimizers) {
    table.rows.push_back({text_cell(optimizer.name),
                          count_cell(static_cast<double>(state_bytes(optimizer, kFp32Bytes))),
                          count_cell(static_cast<double>(optimizer.flops)), text_cell(optimizer.rule)});
  }
  table.notes = {
      "state B: bytes of optimizer state for each parameter. none is for benchmarks of forward and "
      "backward."};
  return table;
}

constexpr std::array<Listing, 15> kListings = {{
    {"gpus", "GPUs with their peaks", list_gpus},
    {"cpus", "host processors", list_cpus},
    {"links", "links between devices and machines", list_links},
    {"machines", "machines and clusters", list_machines},
    {"models", "models and their variants", list_models},
    {"suites", "benchmark suites", list_suites},
    {"datasets", "data sets with their lengths", list_datasets},
    {"frameworks", "frameworks", list_frameworks},
    {"changes", "changes for what-ifs", list_changes},
    {"profiles", "sources of kernel times", list_profiles},
    {"targets", "target qualities with measured epochs", list_targets},
    {"metrics", "what is predicted", list_metrics},
    {"precisions", "number formats", list_precisions},
    {"layers", "layer types and names of model files", list_layers},
    {"optimizers", "optimizers of model files", list_optimizers},
}};

}  // namespace

std::span<const Listing> listings() { return kListings; }

}  // namespace tbdsim
