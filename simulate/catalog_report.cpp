#include "simulate/catalog_report.h"

#include <array>

#include <fmt/format.h>

#include "graphs/dataset.h"
#include "graphs/layers/layer_types.h"
#include "graphs/suite.h"
#include "hwspecs/base/quantity_text.h"
#include "hwspecs/base/suggest.h"
#include "hwspecs/cpu_spec.h"
#include "hwspecs/machine_spec.h"
#include "simulate/metrics.h"
#include "simulate/named_changes.h"

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

Sheet list_gpus(Library& library) {
  Sheet sheet;
  sheet.columns = {{"name", "name"},
                   {"title", "GPU"},
                   {"architecture", ""},
                   {"sm_count", "SMs", true},
                   {"fp32_peak", "fp32 peak", true},
                   {"memory_size", "memory", true},
                   {"memory_bandwidth", "bandwidth", true},
                   {"price_per_hour", ""},
                   {"math", "arithmetic"}};
  for (const std::string& name : library.catalog().names(Kind::gpu)) {
    const GpuSpec& gpu = library.gpu(name);
    sheet.rows.push_back({text_cell(name), text_cell(gpu.title), text_cell(gpu.architecture),
                          count_cell(gpu.sm_count), quantity_cell(rate_of(gpu, MathType::fp32).peak),
                          quantity_cell(gpu.memory_size), quantity_cell(gpu.memory_bandwidth),
                          gpu.price_per_hour ? quantity_cell(*gpu.price_per_hour) : Cell{},
                          text_cell(arithmetic(gpu))});
  }
  sheet.notes = {"fp16*: stored as fp16, computed in fp32. Peaks count a multiply-add as 2 flop."};
  return sheet;
}

Sheet list_cpus(Library& library) {
  Sheet sheet;
  sheet.columns = {{"name", "name"},
                   {"title", "CPU"},
                   {"core_count", "cores", true},
                   {"max_clock", "clock", true},
                   {"memory_type", "memory"},
                   {"memory_bandwidth", "bandwidth", true},
                   {"llc_size", "cache", true}};
  for (const std::string& name : library.catalog().names(Kind::cpu)) {
    const CpuSpec cpu = read_cpu(library.catalog().find(Kind::cpu, name));
    sheet.rows.push_back({text_cell(name), text_cell(cpu.title), count_cell(cpu.core_count),
                          quantity_cell(cpu.max_clock), text_cell(cpu.memory_type),
                          quantity_cell(cpu.memory_bandwidth), quantity_cell(cpu.llc_size)});
  }
  sheet.notes = {"Of one socket."};
  return sheet;
}

Sheet list_links(Library& library) {
  Sheet sheet;
  sheet.columns = {{"name", "name"},
                   {"title", "link"},
                   {"bandwidth", "bandwidth", true},
                   {"achievable", "achievable", true},
                   {"latency", "latency", true}};
  for (const std::string& name : library.catalog().names(Kind::link)) {
    const LinkSpec link = read_link(library.catalog().find(Kind::link, name));
    sheet.rows.push_back({text_cell(name), text_cell(link.title), quantity_cell(link.bandwidth),
                          quantity_cell(achievable(link)), quantity_cell(link.latency)});
  }
  sheet.notes = {"Bandwidths are of one link in each direction."};
  return sheet;
}

// "nvlink2, 16 pairs", "nvlink3 x 12".
std::string nvlink_text(const MachineSpec& machine) {
  if (!machine.nvlink) return "";
  const NvLink& nvlink = *machine.nvlink;
  if (nvlink.to_switch > 0) return fmt::format("{} x {}", nvlink.link.name, nvlink.to_switch);
  return fmt::format("{}, {} pairs", nvlink.link.name, nvlink.pairs.size());
}

Sheet list_machines(Library& library) {
  Sheet sheet;
  sheet.columns = {{"name", "name"},
                   {"title", ""},
                   {"gpus", "GPUs", true},
                   {"gpu", "GPU"},
                   {"root_ports", ""},
                   {"peer_access", "peers below"},
                   {"nvlink", "NVLink"},
                   {"networks", "networks"},
                   {"machines", "machines", true}};
  for (const std::string& name : library.catalog().names(Kind::machine)) {
    const MachineSpec& machine = library.machine(name);
    std::vector<std::string> networks;
    for (const Network& network : machine.networks) networks.push_back(network.link.name);
    sheet.rows.push_back({text_cell(name), text_cell(machine.title), count_cell(machine.gpus),
                          text_cell(machine.gpu), count_cell(static_cast<double>(machine.root_ports.size())),
                          text_cell(kPeerAccessNames[static_cast<std::size_t>(machine.peer_access)]),
                          text_cell(nvlink_text(machine)), text_cell(joined(networks)),
                          machine.machines ? count_cell(*machine.machines) : Cell{}});
  }
  sheet.notes = {"nvlink3 x 12: a switch joins all GPUs, each by 12 links."};
  return sheet;
}

Sheet list_models(Library& library) {
  Sheet sheet;
  sheet.columns = {{"name", "name"},       {"title", "model"},           {"sample", "batch of"},
                   {"variant", "variant"}, {"frameworks", "trained by"}, {"description", "what it is"}};
  for (const std::string& name : library.catalog().names(Kind::model)) {
    const ModelFile& model = library.model(name);
    for (const Variant& variant : model.variants) {
      sheet.rows.push_back({text_cell(name), text_cell(model.title), text_cell(model.sample + "s"),
                            text_cell(variant.name), text_cell(joined(variant.frameworks)),
                            text_cell(variant.description)});
    }
  }
  return sheet;
}

Sheet list_suites(Library& library) {
  Sheet sheet;
  sheet.columns = {{"name", "name"}, {"title", "suite"}, {"models", "models"}};
  for (const std::string& name : library.catalog().names(Kind::suite)) {
    const Suite suite = read_suite(library.catalog().find(Kind::suite, name));
    sheet.rows.push_back({text_cell(name), text_cell(suite.title), text_cell(joined(suite.models))});
  }
  return sheet;
}

Sheet list_datasets(Library& library) {
  Sheet sheet;
  sheet.columns = {{"name", "name"},
                   {"title", "data set"},
                   {"sample", "sample"},
                   {"samples", "in an epoch", true},
                   {"mean_length", "mean length", true},
                   {"longest", ""},
                   {"length_unit", "length in"}};
  for (const std::string& name : library.catalog().names(Kind::dataset)) {
    const Dataset set = read_dataset(library.catalog().find(Kind::dataset, name));
    const double mean = mean_length(set.lengths);
    const bool varies = !set.lengths.empty();
    sheet.rows.push_back({text_cell(name), text_cell(set.title), text_cell(set.sample),
                          set.samples ? count_cell(static_cast<double>(*set.samples)) : Cell{},
                          varies ? number_cell(mean, fmt::format("{:.1f}", mean)) : Cell{},
                          varies ? count_cell(static_cast<double>(set.lengths.back().up_to)) : Cell{},
                          text_cell(set.length_unit)});
  }
  return sheet;
}

Sheet list_frameworks(Library& library) {
  Sheet sheet;
  sheet.columns = {{"name", "name"},
                   {"title", "framework"},
                   {"layout", "layout"},
                   {"workspace_limit", "workspace limit", true}};
  for (const std::string& name : library.catalog().names(Kind::framework)) {
    const Framework& framework = library.framework(name);
    sheet.rows.push_back({text_cell(name), text_cell(framework.title),
                          text_cell(kLayoutNames[static_cast<std::size_t>(framework.lowering.layout)]),
                          quantity_cell(framework.workspace_limit)});
  }
  return sheet;
}

Sheet list_changes(Library& library) {
  Sheet sheet;
  sheet.columns = {{"name", "name"}, {"title", "what if"}};
  for (const std::string& name : library.catalog().names(Kind::change)) {
    const NamedChanges changes = read_changes(library.catalog().find(Kind::change, name));
    sheet.rows.push_back({text_cell(name), text_cell(changes.title)});
  }
  sheet.notes = {"For 'tbd-sim whatif --changes'; 'tbd-sim show' says what each sets."};
  return sheet;
}

Sheet list_profiles(Library& library) {
  Sheet sheet;
  sheet.columns = {{"name", "name"}, {"title", "kernel times"}, {"calibrated", "calibrated"}};
  for (const std::string& name : library.catalog().names(Kind::profile)) {
    const Profile& profile = library.profile(name);
    sheet.rows.push_back({text_cell(name), text_cell(profile.title), flag_cell(profile.calibrated)});
  }
  return sheet;
}

Sheet list_metrics(Library&) {
  Sheet sheet;
  sheet.columns = {{"name", "name"}, {"unit", "unit"}, {"description", "what it is"}};
  for (const Metric& metric : metrics()) {
    sheet.rows.push_back({text_cell(metric.name), text_cell(metric.unit), text_cell(metric.description)});
  }
  return sheet;
}

Sheet list_precisions(Library&) {
  Sheet sheet;
  sheet.columns = {{"name", "name"}, {"description", "what it is"}};
  for (const Precision& precision : kPrecisions) {
    sheet.rows.push_back({text_cell(precision.name), text_cell(precision.description)});
  }
  return sheet;
}

Sheet list_layers(Library&) {
  Sheet sheet;
  sheet.columns = {{"name", "type"}, {"description", "what it is, with its keys (and their defaults)"}};
  for (const LayerType& type : layer_types()) {
    sheet.rows.push_back({text_cell(type.name), text_cell(type.description)});
  }
  return sheet;
}

constexpr std::array<Listing, 13> kListings = {{
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
    {"metrics", "what is predicted", list_metrics},
    {"precisions", "number formats", list_precisions},
    {"layers", "layer types of model files", list_layers},
}};

}  // namespace

std::span<const Listing> listings() { return kListings; }

}  // namespace tbdsim
