#include "simulate/import/gpu_file.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include <fmt/format.h>

#include "hwspecs/base/error.h"
#include "hwspecs/base/number.h"
#include "hwspecs/base/quantity_text.h"
#include "hwspecs/base/spec_parser.h"
#include "hwspecs/base/spec_writer.h"
#include "hwspecs/base/suggest.h"
#include "hwspecs/gpu_spec.h"
#include "hwspecs/usable_memory.h"
#include "simulate/import/text_lines.h"
#include "simulate/import/virtual_gpu.h"

namespace tbdsim {
namespace {

constexpr double kGibi = kMebi * 1'024;

struct Value {
  std::string text;
  std::string source;
};
using Values = std::map<std::string, Value>;

// The keys that facts and the command line can give, and the sort of each.
enum class Sort { text, flag, count, bytes, rate, clock, power };
struct Key {
  std::string_view name;
  Sort sort;
  bool needed;  // of a card that the catalogue does not have
  std::string_view example;
};
constexpr Key kKeys[] = {{"title", Sort::text, false, ""},
                         {"architecture", Sort::text, false, ""},
                         {"product_line", Sort::text, false, ""},
                         {"compute_capability", Sort::text, true, "8.6"},
                         {"sm_count", Sort::count, true, "82"},
                         {"boost_clock", Sort::clock, true, "1695MHz"},
                         {"memory_size", Sort::bytes, false, ""},
                         {"usable_memory", Sort::bytes, true, "23.7GiB"},
                         {"memory_bandwidth", Sort::rate, true, "936GB/s"},
                         {"memory_type", Sort::text, false, ""},
                         {"ecc", Sort::flag, false, ""},
                         {"l2_size", Sort::bytes, true, "6MiB"},
                         {"tdp", Sort::power, true, "350W"},
                         {"bus", Sort::text, false, ""}};

const Key& key_of(const std::string& name) {
  const auto found =
      std::find_if(std::begin(kKeys), std::end(kKeys), [&](const Key& k) { return k.name == name; });
  if (found != std::end(kKeys)) return *found;
  std::vector<std::string> known;
  for (const Key& key : kKeys) known.emplace_back(key.name);
  throw UsageError(fmt::format("--set {}: no key of an imported GPU; expected one of {}{}", in_quotes(name),
                               joined(known), did_you_mean(name, known)));
}

double si_of(const std::string& text, Sort sort) {
  switch (sort) {
    case Sort::bytes:
      return parse_si(text, Bytes::dimension);
    case Sort::rate:
      return parse_si(text, BytesPerSecond::dimension);
    case Sort::clock:
      return parse_si(text, Hertz::dimension);
    case Sort::power:
      return parse_si(text, Watts::dimension);
    default:
      return parse_number(text).value_or(0);
  }
}

std::string whole_bytes(Bytes bytes) { return fmt::format("{:.0f} B", bytes.si()); }
std::string megahertz(Hertz clock) { return fmt::format("{:g} MHz", in_unit(clock, "MHz")); }

// "250W" as "250 W": on a command line a blank needs quotes.
std::string with_blank(const std::string& text) {
  const std::size_t unit = text.find_first_not_of("0123456789.");
  if (unit == 0 || unit == std::string::npos || text.find(' ') != std::string::npos) return text;
  return text.substr(0, unit) + " " + text.substr(unit);
}

Values values_of(const GpuFacts& facts, const std::string& file, const GivenValues& given) {
  const std::string source = fmt::format("{}, {}", facts.tool, file);
  Values values;
  const auto put = [&](const char* key, std::string text) { values[key] = {std::move(text), source}; };
  put("title", facts.name);
  if (facts.capability) put("compute_capability", *facts.capability);
  if (facts.sm_count) put("sm_count", fmt::format("{}", *facts.sm_count));
  if (facts.clock) put("boost_clock", megahertz(*facts.clock));
  if (facts.memory_bandwidth)
    put("memory_bandwidth", fmt::format("{:.6g} GB/s", in_unit(*facts.memory_bandwidth, "GB/s")));
  if (facts.usable_memory) put("usable_memory", whole_bytes(*facts.usable_memory));
  if (facts.ecc) put("ecc", *facts.ecc ? "true" : "false");
  if (facts.l2_size) put("l2_size", whole_bytes(*facts.l2_size));
  if (facts.power_limit) put("tdp", fmt::format("{:g} W", facts.power_limit->si()));
  if (facts.pcie_generation) put("bus", fmt::format("pcie{}", *facts.pcie_generation));
  for (const auto& [key, as_typed] : given) {
    const Sort sort = key_of(key).sort;
    const std::string text = sort >= Sort::bytes ? with_blank(as_typed) : as_typed;
    try {
      if (sort >= Sort::bytes) (void)si_of(text, sort);
    } catch (const std::invalid_argument& wrong) {
      throw UsageError(fmt::format("--set {}: {}", key, wrong.what()));
    }
    values[key] = {text, "given on the command line"};
  }
  return values;
}

// The catalogue holds PCI Express of three generations; slots of earlier ones are not modelled.
std::string bus_in(const Catalog& catalog, const std::string& bus, const std::string& otherwise) {
  return catalog.contains(Kind::link, bus) ? bus : otherwise;
}

void set_sourced(SpecTree& tree, const std::string& key, const Value& value, Sort sort) {
  set_entry(tree, key,
            sort == Sort::text && key != "bus" && key != "architecture" && key != "product_line"
                ? spec_text(value.text)
                : spec_scalar(value.text));
  for (SpecEntry& entry : tree.entries) {
    if (entry.key == "sources" && sort != Sort::text) set_entry(entry.value, key, spec_text(value.source));
  }
}

// Peaks that agree with the SMs and clocks of the tree.
void set_peaks(SpecTree& tree, const std::string& why) {
  const double sms = parse_number(entry_of(tree, "sm_count")->text).value_or(0);
  for (SpecEntry& entry : tree.entries) {
    if (entry.key != "math") continue;
    for (SpecEntry& rate : entry.value.entries) {
      const SpecTree* flops = entry_of(rate.value, "flops_per_clock_per_sm");
      if (flops == nullptr) continue;
      const SpecTree* own = entry_of(rate.value, "clock");
      const double clock =
          si_of(own != nullptr ? own->text : entry_of(tree, "boost_clock")->text, Sort::clock);
      const FlopsPerSecond peak(sms * parse_number(flops->text).value_or(0) * clock);
      set_entry(rate.value, "quoted_peak",
                spec_scalar(fmt::format("{:.6g} TFLOP/s", in_unit(peak, "TFLOP/s"))));
    }
  }
  for (SpecEntry& entry : tree.entries) {
    if (entry.key == "sources") set_entry(entry.value, "math", spec_text(why));
  }
}

std::string source_in(const SpecTree& tree, std::string_view key) {
  const SpecTree* sources = entry_of(tree, "sources");
  const SpecTree* source = sources == nullptr ? nullptr : entry_of(*sources, key);
  return source == nullptr ? "" : source->text;
}

// True if two texts of a key mean values within half a per cent.
bool agree(const std::string& a, const std::string& b, Sort sort) {
  constexpr double kSame = 0.005;
  if (sort == Sort::text || sort == Sort::flag) return a == b;
  return std::abs(si_of(a, sort) - si_of(b, sort)) <= kSame * std::abs(si_of(b, sort));
}

ImportedFile known_card(const std::string& name, const GpuFacts& facts, const Values& values,
                        const GivenValues& given, const Catalog& catalog) {
  SpecTree tree = read_spec_file(catalog.find(Kind::gpu, name));
  std::vector<std::string> differences;
  bool other_rate = false;
  for (const Key& key : kKeys) {
    const std::string name_of_key(key.name);
    const auto value = values.find(name_of_key);
    if (value == values.end()) continue;
    const bool asked = given.contains(name_of_key);
    if (!asked && key.name == "bus") continue;  // of the slot, perhaps, not of the card
    if (!asked && key.name == "boost_clock" && !facts.clock_is_boost) continue;
    if (!asked && key.name == "ecc" && !entry_of(tree, "ecc")) {
      const bool datacenter =
          !entry_of(tree, "product_line") || entry_of(tree, "product_line")->text == "datacenter";
      if ((value->second.text == "true") == datacenter) continue;
    }
    const SpecTree* now = entry_of(tree, key.name);
    if (key.name != "title" && (now == nullptr || !agree(value->second.text, now->text, key.sort))) {
      differences.push_back(fmt::format("{} {} ({} there)", key.name, value->second.text,
                                        now == nullptr ? "not given" : now->text));
      other_rate |= key.name == "sm_count" || key.name == "boost_clock";
    }
    set_sourced(tree, name_of_key, value->second, key.sort);
  }
  if (other_rate) set_peaks(tree, source_in(tree, "math") + "; peaks by the SMs and the clock of this file");
  ImportedFile file{.name = name, .text = write_spec(tree), .notes = {}};
  file.notes.push_back(
      fmt::format("{} is {} of the catalogue{}", facts.name, name,
                  differences.empty() ? ", and nothing differs" : "; what differs: " + joined(differences)));
  if (catalog.contains(Kind::profile, name))
    file.notes.push_back(
        fmt::format("kernels were timed on such a card: --profile {} uses that with this file", name));
  return file;
}

// A virtual GPU that takes turns with others on all SMs of a card. Throws UsageError where its name says more
// memory than the card has.
ImportedFile shared_card(const VirtualGpu& shared, const GpuFacts& facts, Values values,
                         const GivenValues& given, const Catalog& catalog) {
  const Bytes whole = read_gpu(catalog.find(Kind::gpu, shared.card), catalog).memory_size;
  if (shared.memory.si() > whole.si())
    throw UsageError(fmt::format("'{}' says {} of memory; expected at most the {} of {}", facts.name,
                                 whole_bytes(shared.memory), whole_bytes(whole), shared.card));
  const Value by_name{whole_bytes(shared.memory), "the name of the virtual GPU"};
  const auto usable = values.try_emplace("usable_memory", by_name).first;
  const bool more = si_of(usable->second.text, Sort::bytes) > shared.memory.si();
  values.try_emplace("memory_size", more ? usable->second : by_name);
  ImportedFile file = known_card(shared.card, facts, values, given, catalog);
  file.name = file_name_of(facts.name, shared.card);
  file.notes.insert(
      file.notes.begin() + 1,
      fmt::format(
          "a virtual GPU: memory is its own; SMs, clocks and bandwidth are all those of {}, as long as no "
          "other virtual GPU of the card computes (assumed here; of n that do each has an n-th of the time)",
          shared.card));
  return file;
}

ProductLine line_of(const std::string& name) {
  if (holds(name, "GeForce")) return ProductLine::geforce;
  if (holds(name, "TITAN") || holds(name, "Titan")) return ProductLine::titan;
  const bool workstation = holds(name, "Quadro") || holds(name, "RTX A") || holds(name, "RTX PRO") ||
                           (holds(name, "RTX") && holds(name, "Ada"));
  return workstation ? ProductLine::workstation : ProductLine::datacenter;
}

// The catalogue's card whose SMs are most like those of another: of its capability, and of its range if there
// is one. Throws UsageError where no card has that capability.
std::string card_like(const std::string& capability, ProductLine line, const Catalog& catalog) {
  std::string best;
  for (const std::string& name : catalog.names(Kind::gpu)) {
    const GpuSpec gpu = read_gpu(catalog.find(Kind::gpu, name), catalog);
    if (fmt::format("{:.1f}", gpu.compute_capability) != capability) continue;
    if (best.empty() || gpu.product_line == line) best = name;
    if (gpu.product_line == line) return best;
  }
  if (best.empty())
    throw UsageError(
        fmt::format("compute capability {}: no card of the catalogue has it, so the arithmetic of its "
                    "SMs is not known; expected a file written by hand (docs/extending.md)",
                    capability));
  return best;
}

// Cards of compute capability 7.5 that are no RTX have no tensor cores, but pairs of fp16 numbers in their
// lanes: TU116 and TU117, as the GTX 16, MX and T series have them.
bool lacks_tensor_cores(const std::string& name, const std::string& capability) {
  const bool has = holds(name, "RTX") || holds(name, "T4") || holds(name, "T10");
  return capability == "7.5" && (!has || holds(name, "T1000") || holds(name, "T400"));
}

SpecTree math_of_lanes(int lanes) {
  SpecTree math;
  for (const auto& [type, flops] : {std::pair{"fp32", 2 * lanes}, std::pair{"fp16", 4 * lanes}}) {
    SpecTree rate;
    rate.kind = SpecTree::Kind::map;
    add_entry(rate, "flops_per_clock_per_sm", spec_scalar(std::to_string(flops)));
    add_entry(math, type, std::move(rate));
  }
  return math;
}

// A slice of a card by its name, "NVIDIA A100-SXM4-40GB MIG 3g.20gb" or "GRID A100-3-20C": the card's; empty
// for none.
std::string card_of_slice(const std::string& name) {
  if (const auto slice = virtual_gpu(name); slice && slice->slices > 0) return slice->card;
  const std::size_t mig = name.find(" MIG ");
  return mig == std::string::npos ? std::string() : name.substr(0, mig);
}

void require_all(const Values& values, const GpuFacts& facts, const std::string& file) {
  std::string missing, options;
  for (const Key& key : kKeys) {
    if (!key.needed || values.contains(std::string(key.name))) continue;
    missing += fmt::format("{}{}", missing.empty() ? "" : ", ", key.name);
    options += fmt::format(" --set {}={}", key.name, key.example);
  }
  if (missing.empty()) return;
  throw UsageError(
      fmt::format("{}: {} is no card of the catalogue, and {} does not say its {}; expected a further "
                  "file that does (deviceQuery, nvidia-smi -q) or options as{}",
                  file, in_quotes(facts.name), facts.tool, missing, options));
}

// The size that a card with so much usable memory is sold with: whole GiB.
Bytes sold_memory(Bytes usable, const std::string& memory_type, bool ecc) {
  constexpr double kEccShare = 15.0 / 16;  // usable_memory.h
  const double share = ecc && ecc_takes_memory(memory_type) ? kEccShare : 1;
  return Bytes(std::ceil(usable.si() / share / kGibi) * kGibi);
}

ImportedFile new_card(const GpuFacts& facts, const std::string& file, Values values, const Catalog& catalog) {
  const auto whole = known_gpu(card_of_slice(facts.name), catalog);
  if (whole) {
    const SpecTree card = read_spec_file(catalog.find(Kind::gpu, *whole));
    for (const char* key : {"tdp", "memory_type", "bus"}) {
      if (const SpecTree* entry = entry_of(card, key))
        values.try_emplace(key, Value{entry->text, fmt::format("of the whole card, {}", *whole)});
    }
  }
  require_all(values, facts, file);
  const ProductLine line = line_of(facts.name);
  const std::string capability = values.at("compute_capability").text;
  const std::string like = whole ? *whole : card_like(capability, line, catalog);
  const GpuSpec other = read_gpu(catalog.find(Kind::gpu, like), catalog);
  const SpecTree tree_of_other = read_spec_file(catalog.find(Kind::gpu, like));
  const auto unless_given = [&](const char* key, const std::string& text, const std::string& source) {
    values.try_emplace(key, Value{text, source});
  };
  const bool ecc = values.contains("ecc") ? values.at("ecc").text == "true" : line == ProductLine::datacenter;
  const std::string as_other = fmt::format("as the catalogue's {}", like);
  unless_given("architecture", other.architecture, as_other);
  unless_given("product_line", std::string(kProductLineNames[static_cast<std::size_t>(line)]), "the name");
  unless_given("memory_type", other.memory_type, as_other);
  unless_given("bus", other.bus.name, as_other);
  values.at("bus").text = bus_in(catalog, values.at("bus").text, other.bus.name);
  const Bytes usable(si_of(values.at("usable_memory").text, Sort::bytes));
  unless_given("memory_size", whole_bytes(sold_memory(usable, values.at("memory_type").text, ecc)),
               "estimate: the usable memory and what ECC takes, in whole GiB");
  SpecTree tree;
  SpecTree sources;
  sources.kind = SpecTree::Kind::map;
  for (const Key& key : kKeys) {
    const auto value = values.find(std::string(key.name));
    if (value == values.end()) continue;
    set_sourced(tree, value->first, value->second, key.sort);
    if (key.sort != Sort::text) add_entry(sources, value->first, spec_text(value->second.source));
    if (key.name != "sm_count") continue;
    add_entry(tree, "fp32_lanes_per_sm", spec_scalar(std::to_string(other.fp32_lanes_per_sm)));
    add_entry(sources, "fp32_lanes_per_sm", spec_text(source_in(tree_of_other, "fp32_lanes_per_sm")));
  }
  const bool lanes_alone = lacks_tensor_cores(facts.name, capability);
  SpecTree math = lanes_alone ? math_of_lanes(other.fp32_lanes_per_sm) : *entry_of(tree_of_other, "math");
  if (!whole) {  // clocks of another card
    for (SpecEntry& rate : math.entries)
      std::erase_if(rate.value.entries, [](const SpecEntry& entry) { return entry.key == "clock"; });
  }
  add_entry(tree, "math", std::move(math));
  add_entry(tree, "sources", std::move(sources));
  set_peaks(
      tree,
      lanes_alone
          ? "CUDA C++ Programming Guide, arithmetic throughput, 7.5: 64 fp32 and 128 fp16 lanes per SM; no "
            "tensor cores, as no card of capability 7.5 that is no RTX has them"
          : fmt::format("compute capability {}, an SM as the catalogue's {}: {}", capability, like,
                        source_in(tree_of_other, "math")));
  ImportedFile imported{.name = file_name_of(facts.name, "gpu"), .text = write_spec(tree), .notes = {}};
  imported.notes.push_back(
      fmt::format("{} is {}: an SM of compute capability {} computes {}, memory is {}, the bus {}",
                  facts.name, whole ? "a slice of " + *whole : "no card of the catalogue", capability,
                  lanes_alone ? "without tensor cores" : "as that of " + like, values.at("memory_type").text,
                  values.at("bus").text));
  if (facts.clock && !facts.clock_is_boost)
    imported.notes.push_back(
        "boost_clock is the highest clock of the driver; deviceQuery prints the boost clock");
  return imported;
}

}  // namespace

std::optional<std::string> known_gpu(std::string_view called, const Catalog& catalog) {
  if (called.empty()) return std::nullopt;
  if (auto name = catalog.name_of(Kind::gpu, called)) return name;
  if (auto shared = virtual_gpu(called); shared && shared->slices == 0) return shared->card;
  // "Tesla V100-SXM3-32GB-H": a letter more for a board of the same sort.
  const std::size_t dash = called.rfind('-');
  if (dash == std::string_view::npos || dash + 2 != called.size()) return std::nullopt;
  return catalog.name_of(Kind::gpu, called.substr(0, dash));
}

ImportedFile gpu_file(const GpuFacts& facts, const std::string& file, const GivenValues& given,
                      const Catalog& catalog) {
  const Values values = values_of(facts, file, given);
  if (const auto shared = virtual_gpu(facts.name); shared && shared->slices == 0)
    return shared_card(*shared, facts, values, given, catalog);
  const auto known = known_gpu(facts.name, catalog);
  ImportedFile made =
      known ? known_card(*known, facts, values, given, catalog) : new_card(facts, file, values, catalog);
  if (facts.divided)
    made.notes.emplace_back(
        "MIG is on, and this is the whole card: of a slice deviceQuery prints its own SMs and memory "
        "(CUDA_VISIBLE_DEVICES=MIG-... deviceQuery)");
  return made;
}

}  // namespace tbdsim
