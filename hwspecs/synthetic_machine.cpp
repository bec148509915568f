#include "hwspecs/synthetic_machine.h"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include "hwspecs/base/error.h"
#include "hwspecs/base/suggest.h"

namespace tbdsim {
namespace {

constexpr int kGpusOfARoot = 4;  // the most below a root port, behind a PCIe switch

// Removes the ending if it is there; true if it was.
bool take(std::string& word, std::string_view ending) {
  if (!word.ends_with(ending)) return false;
  word.resize(word.size() - ending.size());
  return true;
}

// `most`: that such a machine holds.
void keep_gpus(MachineSpec& machine, int gpus, int most) {
  if (gpus < 1 || gpus > most) {
    throw UsageError(
        fmt::format("{} GPUs in one machine; expected 1 to {}, or a machine's file", gpus, most));
  }
  machine.gpus = gpus;
  // Spread over the ports, so that as few GPUs as possible share one.
  const auto ports = static_cast<int>(machine.root_ports.size());
  const int spread = std::max(gpus, ports);
  for (int p = 0; p < ports; ++p) {
    std::vector<int>& below = machine.root_ports[static_cast<std::size_t>(p)].gpus;
    below.clear();
    for (int gpu = p * spread / ports; gpu < std::min(gpus, (p + 1) * spread / ports); ++gpu)
      below.push_back(gpu);
  }
  std::erase_if(machine.root_ports, [](const RootPort& port) { return port.gpus.empty(); });
}

void use_one_root(MachineSpec& machine) {
  const LinkSpec link = machine.root_ports.front().link;
  machine.root_ports.clear();
  for (int gpu = 0; gpu < machine.gpus; ++gpu) {
    if (gpu % kGpusOfARoot == 0)
      machine.root_ports.push_back({.link = link, .slot = {}, .socket = 0, .gpus = {}});
    machine.root_ports.back().gpus.push_back(gpu);
  }
}

// The catalogue's machine that is assumed where only the slots of the GPUs are given.
std::string server_of(const std::string& slot) { return "server_" + slot; }

bool is_slot(const std::string& link, const Catalog& catalog) {
  return kind_of_link(link, catalog) == LinkKind::pcie && catalog.contains(Kind::machine, server_of(link));
}

// The text of `network`, taken apart.
struct InterconnectSpec {
  std::string link;  // "nvlink", a slot, a network's link, or empty
  bool slot = false;
  bool network = false;
  bool nvlink = false;
  bool pairs = false;     // "_pairs"
  bool host = false;      // "_host"
  bool one_root = false;  // "_1root"
};

// The link of the slots; the GPU's own bus where the text has none or a faster one, which would not be used.
std::string slot_of(const InterconnectSpec& spec, const GpuSpec& gpu, const Catalog& catalog,
                    const SpecChanges& changes) {
  if (!spec.slot) return gpu.bus.name;
  const LinkSpec slot = read_link(catalog.find(Kind::link, spec.link), changes);
  const bool faster = achievable(slot) > achievable(gpu.bus) && is_slot(gpu.bus.name, catalog);
  return faster ? gpu.bus.name : spec.link;
}

// Joins the GPUs as on the machine whose board they are made for: its wires, and its reach of peer access.
void wire_as_board(MachineSpec& machine, const GpuSpec& gpu, const Catalog& catalog,
                   const SpecChanges& changes) {
  const MachineSpec board = read_machine(catalog.find(Kind::machine, gpu.nvlink->mesh), catalog, changes);
  machine.nvlink = board.nvlink;
  machine.peer_access = board.peer_access;
  std::erase_if(machine.nvlink->pairs,
                [&](const NvLinkPair& pair) { return std::max(pair.a, pair.b) >= machine.gpus; });
}

NvLink nvlink_of(const GpuSpec& gpu, int gpus, bool pairs) {
  if (!gpu.nvlink)
    throw UsageError(gpu.title + " has no NVLink; expected a network over PCIe, such as " + gpu.bus.name);
  NvLink nvlink{.link = gpu.nvlink->link, .pairs = {}};
  if (!pairs) nvlink.to_switch = gpu.nvlink->count;
  for (int a = 0; pairs && a + 1 < gpus; a += 2) nvlink.pairs.push_back({a, a + 1, gpu.nvlink->count});
  return nvlink;
}

[[noreturn]] void refuse(const std::string& word, const Catalog& catalog) {
  std::vector<std::string> known;
  const auto add = [&](const std::string& way) {
    for (const char* ending : {"", "_host", "_1root", "_host_1root"}) known.push_back(way + ending);
  };
  add("nvlink");
  add("nvlink_pairs");
  for (const std::string& link : catalog.names(Kind::link)) {
    if (is_slot(link, catalog)) add(link);
    if (kind_of_link(link, catalog) == LinkKind::network) known.push_back(link);
  }
  throw UsageError(fmt::format("unknown network {}; expected one of {}{}", in_quotes(word), joined(known),
                               did_you_mean(word, known)));
}

InterconnectSpec parse(const std::string& text, const Catalog& catalog) {
  if (kind_of_link(text, catalog) == LinkKind::network) return {.link = text, .network = true};
  InterconnectSpec spec{.link = text};
  spec.one_root = take(spec.link, "_1root");
  spec.host = take(spec.link, "_host");
  spec.pairs = take(spec.link, "_pairs");
  spec.nvlink = spec.link == "nvlink";
  spec.slot = !spec.nvlink && !spec.pairs && is_slot(spec.link, catalog);
  if (!text.empty() && !spec.nvlink && !spec.slot) refuse(text, catalog);
  return spec;
}

}  // namespace

std::string usual_interconnect(const GpuSpec& gpu) {
  const bool boards = gpu.nvlink && !gpu.nvlink->bridge;
  return boards ? "nvlink" : gpu.bus.name;
}

MachineSpec synthesize_machine(const GpuSpec& gpu, int gpus, const std::string& text, const Catalog& catalog,
                               const SpecChanges& changes) {
  const InterconnectSpec spec = parse(text, catalog);
  const std::string bus = slot_of(spec, gpu, catalog, changes);
  const bool joined = spec.nvlink || (!spec.slot && usual_interconnect(gpu) == "nvlink");
  const bool mesh = joined && !spec.pairs && gpu.nvlink && !gpu.nvlink->mesh.empty();
  MachineSpec machine = read_machine(catalog.find(Kind::machine, server_of(bus)), catalog, changes);
  machine.name = text;
  machine.title = fmt::format("{} x {}{}{}", gpus, gpu.title, text.empty() ? "" : ", ", text);
  machine.gpu = gpu.name;
  // Boards come as many as a machine's file has; of cards, several may share a port.
  keep_gpus(machine, gpus,
            joined ? machine.gpus : kGpusOfARoot * static_cast<int>(machine.root_ports.size()));
  if (spec.one_root) use_one_root(machine);
  if (mesh) wire_as_board(machine, gpu, catalog, changes);
  if (joined && !mesh) machine.nvlink = nvlink_of(gpu, gpus, spec.pairs);
  if (spec.host) machine.peer_access = PeerAccess::none;
  if (spec.network)
    machine.networks = {{.link = read_link(catalog.find(Kind::link, spec.link), changes), .below = {}}};
  return machine;
}

void require_interconnect(const std::string& word, const Catalog& catalog) { (void)parse(word, catalog); }

}  // namespace tbdsim
