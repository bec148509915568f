#include "hwspecs/gpu_spec.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "hwspecs/base/catalog_reference.h"
#include "hwspecs/base/number.h"
#include "hwspecs/base/spec_reader.h"
#include "hwspecs/base/suggest.h"
#include "hwspecs/usable_memory.h"

namespace tbdsim {
namespace {

constexpr double kPeakTolerance = 0.01;  // vendors print three or four digits

constexpr std::string_view kSourcedKeys[] = {
    "sm_count",         "fp32_lanes_per_sm", "boost_clock",   "math",   "memory_size",
    "memory_bandwidth", "l2_size",           "tdp",           "nvlink", "price",
    "price_per_hour",   "board_slowdown",    "usable_memory", "ecc",    "sustained_share"};

constexpr std::string_view kArchitectures[] = {"kepler", "maxwell", "pascal", "volta",    "turing",
                                               "ampere", "ada",     "hopper", "blackwell"};
// The first and last compute capability of each, from the CUDA C++ Programming Guide.
constexpr std::pair<double, double> kCapabilities[] = {{3.0, 3.7}, {5.0, 5.3}, {6.0, 6.2},
                                                       {7.0, 7.2}, {7.5, 7.5}, {8.0, 8.8},
                                                       {8.9, 8.9}, {9.0, 9.0}, {10.0, 12.1}};
static_assert(std::size(kCapabilities) == std::size(kArchitectures));

MathRate read_rate(const SpecNode& node, const GpuSpec& gpu, bool as_sold) {
  MathRate rate;
  node.map([&](SpecMap& m) {
    rate.flops_per_clock_per_sm = static_cast<double>(m.at("flops_per_clock_per_sm").count(1, 1'000'000));
    const auto clock = m.find("clock");
    rate.clock = clock ? clock->quantity<Hertz>() : gpu.boost_clock;
    rate.peak = Flops(gpu.sm_count * rate.flops_per_clock_per_sm) * rate.clock;
    const SpecNode quoted = m.at("quoted_peak");
    rate.quoted_peak = quoted.quantity<FlopsPerSecond>();
    const double off = rate.peak / rate.quoted_peak - 1;
    if (as_sold && std::abs(off) > kPeakTolerance) {
      quoted.fail(
          fmt::format("{} is quoted, but {} SMs x {} flop/clock/SM x {} = {}, {:+.1f} % off; expected "
                      "agreement within 1 %",
                      to_text(rate.quoted_peak), gpu.sm_count, rate.flops_per_clock_per_sm,
                      to_text(rate.clock), to_text(rate.peak), 100 * off));
    }
  });
  return rate;
}

void read_math(const SpecNode& node, GpuSpec& gpu, bool as_sold) {
  node.map([&](SpecMap& m) {
    for (std::size_t i = 0; i < kMathTypeCount; ++i) {
      const auto entry = m.find(kMathTypeNames[i]);
      if (!entry) continue;
      bool stored_only = false;
      if (entry->tree().kind == SpecTree::Kind::map) {
        for (const SpecEntry& key : entry->tree().entries) stored_only |= key.key == "computes_in";
      }
      if (!stored_only) {
        gpu.math[i] = read_rate(*entry, gpu, as_sold);
        continue;
      }
      entry->map([&](SpecMap& e) {
        gpu.computes_in[i] = static_cast<MathType>(e.at("computes_in").one_of(kMathTypeNames));
      });
    }
    m.reject_unknown_keys();  // a misspelt type is to blame for a missing one
    const auto& fp32 = gpu.math[index_of(MathType::fp32)];
    if (!fp32)
      node.fail("no rate for fp32; expected 'fp32: {flops_per_clock_per_sm: ..., quoted_peak: ...}'");
    if (fp32->flops_per_clock_per_sm != 2.0 * gpu.fp32_lanes_per_sm) {
      node.fail(fmt::format("fp32: {} flop/clock/SM with {} lanes; expected {}, 2 for each lane",
                            fp32->flops_per_clock_per_sm, gpu.fp32_lanes_per_sm, 2 * gpu.fp32_lanes_per_sm));
    }
    for (std::size_t i = 0; i < kMathTypeCount; ++i) {
      if (gpu.computes_in[i] && !gpu.math[index_of(*gpu.computes_in[i])]) {
        node.fail(fmt::format("{}: computes_in names {}, for which this card gives no rate",
                              kMathTypeNames[i], name_of(*gpu.computes_in[i])));
      }
    }
  });
}

NvLinkPorts read_nvlink(const SpecNode& node, const Catalog& catalog, const SpecChanges& changes) {
  NvLinkPorts ports;
  node.map([&](SpecMap& m) {
    ports.link = link_named(m.at("link"), LinkKind::nvlink, catalog, changes);
    ports.count = static_cast<int>(m.at("count").count(1, 1000));
    if (const auto bridge = m.find("bridge")) ports.bridge = bridge->flag();
    if (const auto mesh = m.find("mesh")) {
      const auto file = file_named(*mesh, Kind::machine, catalog);
      ports.mesh = is_path(mesh->text()) ? file.string() : mesh->text();
    }
  });
  return ports;
}

void read_bus_and_nvlinks(SpecMap& m, GpuSpec& gpu, const Catalog& catalog, const SpecChanges& changes) {
  gpu.bus = link_named(m.at("bus"), LinkKind::pcie, catalog, changes);
  if (const auto nvlink = m.find("nvlink")) gpu.nvlink = read_nvlink(*nvlink, catalog, changes);
}

// A compute capability of the architecture as two numbers: "8.6", not "86".
double read_capability(const SpecNode& node, std::size_t architecture) {
  const std::string text = node.text();
  const auto [first, last] = kCapabilities[architecture];
  const auto number = parse_number(text);
  if (!number || text != fmt::format("{:.1f}", *number) || *number < first || *number > last) {
    node.fail(fmt::format("{} is no compute capability of {}; expected {:.1f} to {:.1f}", in_quotes(text),
                          kArchitectures[architecture], first, last));
  }
  return *number;
}

// The cost model distinguishes stacked memory (HBM) by this name, so a misspelt one would change predictions.
std::string read_memory_type(const SpecNode& node) {
  const std::string text = node.text();
  constexpr std::string_view kKinds[] = {"GDDR", "HBM", "LPDDR", "DDR"};
  if (std::none_of(std::begin(kKinds), std::end(kKinds), [&](auto kind) { return text.starts_with(kind); }))
    node.fail(in_quotes(text) +
              " is unknown; expected GDDR, HBM, LPDDR or DDR with its generation, such as HBM3e");
  return text;
}

Bytes rule_for(const GpuSpec& gpu) {
  return usable_memory_by_rule(gpu.memory_size, gpu.memory_type, gpu.ecc);
}

Bytes whole(Bytes bytes) { return Bytes(std::floor(bytes.si())); }

void read_memory(SpecMap& m, GpuSpec& gpu, bool as_sold) {
  gpu.memory_size = m.at("memory_size").quantity<Bytes>();
  gpu.memory_bandwidth = m.at("memory_bandwidth").quantity<BytesPerSecond>();
  gpu.memory_type = read_memory_type(m.at("memory_type"));
  const auto ecc = m.find("ecc");
  gpu.ecc = ecc ? ecc->flag() : gpu.product_line == ProductLine::datacenter;
  const auto usable = m.find("usable_memory");
  gpu.usable_memory = whole(usable ? usable->quantity<Bytes>() : rule_for(gpu));
  if (as_sold && gpu.usable_memory > gpu.memory_size) {
    usable->fail(fmt::format("{} of a card with {}; expected no more than its memory_size",
                             to_text(gpu.usable_memory), to_text(gpu.memory_size)));
  }
}

// Scales the usable memory of the card as sold by what the changes do to the rule, unless they say it.
void keep_usable_share(GpuSpec& changed, const GpuSpec& as_sold, const SpecChanges& own) {
  const auto says = [](const SpecChange& change) { return change.path[0] == "usable_memory"; };
  if (std::any_of(own.begin(), own.end(), says)) return;
  changed.usable_memory = whole(as_sold.usable_memory * (rule_for(changed) / rule_for(as_sold)));
}

// Reads all keys but those of links.
void read_card(SpecMap& m, GpuSpec& gpu, bool as_sold) {
  gpu.title = m.at("title").text();
  gpu.also_called = m.texts("also_called");
  const std::size_t architecture = m.at("architecture").one_of(kArchitectures);
  gpu.architecture = kArchitectures[architecture];
  if (const auto line = m.find("product_line"))
    gpu.product_line = static_cast<ProductLine>(line->one_of(kProductLineNames));
  gpu.compute_capability = read_capability(m.at("compute_capability"), architecture);
  gpu.sm_count = static_cast<int>(m.at("sm_count").count(1, 10'000));
  gpu.fp32_lanes_per_sm = static_cast<int>(m.at("fp32_lanes_per_sm").count(1, 10'000));
  gpu.boost_clock = m.at("boost_clock").quantity<Hertz>();
  read_math(m.at("math"), gpu, as_sold);
  read_memory(m, gpu, as_sold);
  gpu.l2_size = m.at("l2_size").quantity<Bytes>();
  gpu.tdp = m.at("tdp").quantity<Watts>();
  if (const auto price = m.find("price")) gpu.price = price->quantity<Dollars>();
  if (const auto slowdown = m.find("board_slowdown")) gpu.board_slowdown = slowdown->number(0, 1);
  if (const auto share = m.find("sustained_share")) gpu.sustained_share = share->number(0.01, 1.3);
  if (const auto price = m.find("price_per_hour")) gpu.price_per_hour = price->quantity<DollarsPerSecond>();
}

}  // namespace

GpuSpec read_gpu(const std::filesystem::path& file, const Catalog& catalog, const SpecChanges& changes) {
  const SpecChanges own = changes_of(changes, "gpu", file.stem().string());
  const SpecTree tree = read_spec_file(file, own);
  GpuSpec gpu;
  gpu.name = file.stem().string();
  SpecNode(tree).map([&](SpecMap& m) {
    read_card(m, gpu, own.empty());
    read_bus_and_nvlinks(m, gpu, catalog, changes);
    gpu.sources = read_sources(m, kSourcedKeys);
  });
  if (!own.empty()) keep_usable_share(gpu, read_gpu(file, catalog), own);
  return gpu;
}

GpuSpec changed_gpu(const SpecTree& tree, const GpuSpec& as_sold, const SpecChanges& changes) {
  SpecTree changed{.kind = tree.kind, .text = {}, .items = {}, .entries = {}, .mark = tree.mark};
  changed.entries.reserve(tree.entries.size());
  for (const SpecEntry& entry : tree.entries) {
    if (entry.key != "sources") changed.entries.push_back(entry);
  }
  const SpecChanges own = changes_of(changes, "gpu", as_sold.name);
  apply_changes(changed, own);
  GpuSpec gpu;
  gpu.name = as_sold.name;
  gpu.bus = as_sold.bus;
  gpu.nvlink = as_sold.nvlink;
  SpecNode(changed).map([&](SpecMap& m) {
    read_card(m, gpu, false);
    for (const char* same : {"bus", "nvlink", "sources"}) (void)m.find(same);
  });
  keep_usable_share(gpu, as_sold, own);
  return gpu;
}

const MathRate& rate_of(const GpuSpec& gpu, MathType type) {
  const auto& rate = gpu.math[index_of(gpu.computes_in[index_of(type)].value_or(type))];
  if (!rate) {
    throw UsageError(fmt::format("{} has no {} arithmetic; expected one of its own: {}", gpu.title,
                                 name_of(type), math_text(gpu)));
  }
  return *rate;
}

std::string memory_text(Bytes usable, Bytes memory_size) {
  return fmt::format("{} usable of {}", to_text(usable), to_text(memory_size));
}

std::string math_text(const GpuSpec& gpu) {
  std::string text;
  for (std::size_t i = 0; i < kMathTypeCount; ++i) {
    if (!gpu.math[i] && !gpu.computes_in[i]) continue;
    text += fmt::format("{}{}", text.empty() ? "" : ", ", kMathTypeNames[i]);
    if (gpu.computes_in[i]) text += fmt::format(" (computed in {})", name_of(*gpu.computes_in[i]));
  }
  return text;
}

}  // namespace tbdsim
