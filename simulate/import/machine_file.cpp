#include "simulate/import/machine_file.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "hwspecs/base/error.h"
#include "hwspecs/base/quantity_text.h"
#include "hwspecs/base/spec_writer.h"
#include "hwspecs/base/suggest.h"
#include "hwspecs/gpu_spec.h"
#include "simulate/import/gpu_file.h"
#include "simulate/import/text_lines.h"

namespace tbdsim {
namespace {

// Stand-ins for parts that no tool names.
constexpr const char* kUsualCpu = "xeon_gold_6230";
constexpr const char* kLinkOfGrace = "nvlink_c2c";
constexpr const char* kUsualMemory = "256 GiB";
constexpr const char* kUsualGpu = "a100_pcie_40gb";
// A card of so many NVLinks, most first.
constexpr std::pair<int, const char*> kCardsWithLinks[] = {
    {12, "h100_sxm"}, {6, "a100_sxm_80gb"}, {4, "v100_sxm2_32gb"}, {2, "p100_sxm2"}, {0, "rtx2080ti"}};

struct Gpu {
  std::string name;
  GpuSpec spec;
  bool stands_in = false;
};

// Links of the GPU that has the most. Through a switch every pair has all links of a GPU, so that the sum is
// more than any card has.
int most_links(const MachineFacts& facts) {
  constexpr int kMostOfACard = 18;  // NVIDIA H100 and Blackwell architecture whitepapers
  std::map<int, int> of_gpu;
  int most_of_pair = 0, most = 0;
  for (const NvLinkPair& pair : facts.nvlinks) {
    most_of_pair = std::max(most_of_pair, pair.links);
    most = std::max({most, of_gpu[pair.a] += pair.links, of_gpu[pair.b] += pair.links});
  }
  return most > kMostOfACard ? most_of_pair : most;
}

Gpu gpu_of(const MachineFacts& facts, const std::string& given, const Catalog& catalog) {
  std::string name = given;
  bool stands_in = false;
  if (name.empty()) {
    if (const auto known = known_gpu(facts.slots.front().gpu, catalog)) name = *known;
  }
  if (name.empty() && !facts.slots.front().gpu.empty())
    throw UsageError(
        fmt::format("{}: names the GPU {}, which is not in the catalogue; expected --gpu with a name or "
                    "a file of it ('tbd-sim import' makes one of deviceQuery's output)",
                    facts.tool, in_quotes(facts.slots.front().gpu)));
  if (name.empty()) {
    stands_in = true;
    name = kUsualGpu;
    for (const auto& [more_than, card] : kCardsWithLinks) {
      if (most_links(facts) <= more_than) continue;
      name = card;
      break;
    }
  }
  return {name, read_gpu(catalog.find(Kind::gpu, name), catalog), stands_in};
}

// The reach of PCIe peers. GeForce cards of Turing and later have none but over NVLink.
PeerAccess peers_of(const MachineFacts& facts, const Gpu& gpu) {
  constexpr double kTuring = 7.5;
  const bool without =
      gpu.spec.product_line == ProductLine::geforce && gpu.spec.compute_capability >= kTuring;
  if (without && !gpu.stands_in) return PeerAccess::none;
  if (facts.pcie_pairs) return PeerAccess::socket;
  return gpu.stands_in ? PeerAccess::none : PeerAccess::socket;
}

SpecTree list_of_numbers(const std::vector<int>& numbers) {
  SpecTree list;
  list.kind = SpecTree::Kind::list;
  for (const int number : numbers) list.items.push_back(spec_scalar(std::to_string(number)));
  return list;
}

SpecTree root_ports_of(const MachineFacts& facts, const std::string& link) {
  std::map<int, std::vector<int>> gpus;
  for (std::size_t i = 0; i < facts.slots.size(); ++i)
    gpus[facts.slots[i].port].push_back(static_cast<int>(i));
  SpecTree ports;
  ports.kind = SpecTree::Kind::list;
  for (const auto& [port, below] : gpus) {
    SpecTree entry;
    add_entry(entry, "link", spec_scalar(link));
    add_entry(entry, "socket",
              spec_scalar(std::to_string(facts.slots[static_cast<std::size_t>(below.front())].socket)));
    add_entry(entry, "gpus", list_of_numbers(below));
    ports.items.push_back(std::move(entry));
  }
  return ports;
}

// Links of each pair, from rates where the tool counts none.
std::vector<NvLinkPair> counted(const MachineFacts& facts, const NvLinkPorts& ports) {
  std::vector<NvLinkPair> pairs = facts.nvlinks;
  for (std::size_t i = 0; i < facts.nvlink_rates.size(); ++i) {
    const double links = facts.nvlink_rates[i] / ports.link.bandwidth;
    pairs[i].links = std::clamp(static_cast<int>(std::lround(std::min(links, 1'000.0))), 1, ports.count);
  }
  return pairs;
}

std::optional<SpecTree> nvlink_of(const MachineFacts& facts, const Gpu& gpu) {
  if (facts.nvlinks.empty()) return std::nullopt;
  if (!gpu.spec.nvlink)
    throw UsageError(
        fmt::format("{}: pairs of GPUs are joined by NVLink, which {} has not; expected another --gpu",
                    facts.tool, gpu.spec.title));
  const NvLinkPorts& ports = *gpu.spec.nvlink;
  const std::vector<NvLinkPair> pairs = counted(facts, ports);
  SpecTree nvlink;
  add_entry(nvlink, "link", spec_scalar(ports.link.name));
  // Every pair has the same links, more than a GPU could give to each of the others: there is a switch.
  const std::size_t n = facts.slots.size();
  const int each = pairs.front().links;
  const bool alike =
      std::all_of(pairs.begin(), pairs.end(), [&](const NvLinkPair& p) { return p.links == each; });
  if (alike && n > 2 && pairs.size() == n * (n - 1) / 2 && each * static_cast<int>(n - 1) > ports.count) {
    add_entry(nvlink, "to_switch", spec_scalar(std::to_string(std::min(each, ports.count))));
    return nvlink;
  }
  SpecTree list;
  list.kind = SpecTree::Kind::list;
  for (const NvLinkPair& pair : pairs) list.items.push_back(list_of_numbers({pair.a, pair.b, pair.links}));
  add_entry(nvlink, "pairs", std::move(list));
  return nvlink;
}

// The catalogue's CPU whose title's words are all in the model that a tool prints; none otherwise.
std::optional<std::string> known_cpu(const std::string& model, const Catalog& catalog) {
  const auto plain = [](std::string text) {
    for (const char* mark : {"(R)", "(TM)", "(tm)"}) {
      for (std::size_t at = text.find(mark); at != std::string::npos; at = text.find(mark))
        text.replace(at, std::string_view(mark).size(), " ");
    }
    const std::vector<std::string> words = words_of(text);
    return std::set<std::string>(words.begin(), words.end());
  };
  const std::set<std::string> said = plain(model);
  for (const std::string& name : catalog.names(Kind::cpu)) {
    const std::string title = read_cpu(catalog.find(Kind::cpu, name)).title;
    const std::set<std::string> words = plain(title);
    if (std::includes(said.begin(), said.end(), words.begin(), words.end())) return name;
  }
  return std::nullopt;
}

// The maker of a processor by its model as tools print it; Intel where it is not said.
std::string_view maker_of(std::string_view model) {
  for (const char* amd : {"AMD", "EPYC", "Ryzen", "Threadripper"}) {
    if (holds(model, amd)) return "AMD";
  }
  for (const char* arm : {"ARM", "Arm", "Neoverse", "Grace", "Graviton", "Ampere", "Altra"}) {
    if (holds(model, arm)) return "NVIDIA";
  }
  return "Intel";
}

// The CPU that stands for one that the catalogue does not have: of its maker, the one with the most similar
// number of cores; the usual one of its maker where no cores are counted. Only Grace has NVLink-C2C.
std::string usual_cpu(const MachineFacts& facts, const GpuSpec& gpu, const Catalog& catalog) {
  if (gpu.bus.name == kLinkOfGrace) return "grace";
  const std::string_view maker = maker_of(facts.cpu);
  std::string best = maker == "AMD" ? "epyc_7742" : maker == "NVIDIA" ? "grace" : kUsualCpu;
  if (facts.cores == 0) return best;
  const auto off = [&](const CpuSpec& cpu) {
    return std::abs(std::log(double(cpu.core_count) / facts.cores));
  };
  double least = off(read_cpu(catalog.find(Kind::cpu, best)));
  for (const std::string& name : catalog.names(Kind::cpu)) {
    const CpuSpec cpu = read_cpu(catalog.find(Kind::cpu, name));
    if (!cpu.title.starts_with(maker) || off(cpu) >= least) continue;
    least = off(cpu);
    best = name;
  }
  return best;
}

std::string given_or(const GivenValues& given, const std::string& key, const std::string& otherwise) {
  const auto found = given.find(key);
  return found == given.end() ? otherwise : found->second;
}

void require_known_keys(const GivenValues& given) {
  const std::vector<std::string> known = {"title", "cpu", "memory_size", "peer_access"};
  for (const auto& [key, unused] : given) {
    if (std::find(known.begin(), known.end(), key) == known.end())
      throw UsageError(fmt::format("--set {}: no key of an imported machine; expected one of {}{}",
                                   in_quotes(key), joined(known), did_you_mean(key, known)));
  }
}

}  // namespace

ImportedFile machine_file(const MachineFacts& facts, const std::string& file, const std::string& given_gpu,
                          const GivenValues& given, const Catalog& catalog) {
  require_known_keys(given);
  const Gpu gpu = gpu_of(facts, given_gpu, catalog);
  const std::string source = fmt::format("{}, {}", facts.tool, file);
  const auto cpu = known_cpu(facts.cpu, catalog);
  const std::string stand_in = cpu ? *cpu : usual_cpu(facts, gpu.spec, catalog);
  const std::string peers = given_or(
      given, "peer_access", std::string(kPeerAccessNames[static_cast<std::size_t>(peers_of(facts, gpu))]));
  const bool memory_known = facts.memory_size && *facts.memory_size > Bytes(0);
  const std::string memory =
      memory_known ? fmt::format("{:.1f} GiB", in_unit(*facts.memory_size, "GiB")) : kUsualMemory;
  const auto nvlink = nvlink_of(facts, gpu);

  SpecTree tree, sources;
  const auto add = [&](const char* key, SpecTree value, const std::string& why) {
    add_entry(tree, key, std::move(value));
    if (!why.empty()) add_entry(sources, key, spec_text(why));
  };
  const auto why = [&](const char* key, const std::string& otherwise) {
    return given.contains(key) ? std::string("given on the command line") : otherwise;
  };
  const std::string cards = fmt::format("{} {}", facts.slots.size(), gpu.stands_in ? "GPUs" : gpu.spec.title);
  const std::string usual = facts.title.empty() ? cards : facts.title;
  add("title", spec_text(given_or(given, "title", usual)), "");
  add("gpu", spec_scalar(gpu.name), "");
  add("gpus", spec_scalar(std::to_string(facts.slots.size())), source);
  const std::string processor = given_or(given, "cpu", stand_in);
  add("cpu", spec_scalar(processor), "");
  add("sockets", spec_scalar(std::to_string(facts.sockets)),
      facts.sockets_by.empty() ? source : fmt::format("estimate: {}, {}", facts.sockets_by, source));
  add("memory_size", spec_scalar(given_or(given, "memory_size", memory)),
      why("memory_size", memory_known ? source : "estimate: usual for such a server"));
  add("root_ports", root_ports_of(facts, gpu.spec.bus.name), source + "; links as fast as the GPU's bus");
  if (facts.sockets > 1) {
    const bool amd = processor.starts_with("epyc");
    SpecTree link;
    add_entry(link, "link", spec_scalar(amd ? "xgmi2" : "upi"));
    add_entry(link, "count", spec_scalar(amd ? "3" : "2"));
    add("socket_link", std::move(link),
        fmt::format("estimate: {} links of the usual kind", amd ? "three" : "two"));
  }
  add("peer_access", spec_scalar(peers),
      why("peer_access",
          "estimate: peers below one socket over PCI Express; none between GeForce cards of Turing and "
          "later"));
  if (nvlink) add("nvlink", *nvlink, source);
  add_entry(tree, "sources", std::move(sources));

  ImportedFile imported{.name = file_name_of(std::filesystem::path(file).stem().string(), "machine"),
                        .text = write_spec(tree),
                        .notes = {}};
  std::set<std::string> named;
  for (const GpuSlot& slot : facts.slots) named.insert(slot.gpu);
  if (named.size() > 1)
    imported.notes.push_back(
        fmt::format("GPUs differ ({}), which a machine of tbd-sim has not: all are taken as {}",
                    joined(std::vector<std::string>(named.begin(), named.end())), gpu.name));
  if (gpu.stands_in)
    imported.notes.push_back(
        fmt::format("{} names no GPU: {} stands for it; --gpu here, or wherever the machine is "
                    "used, says which",
                    facts.tool, gpu.name));
  if (!cpu && !given.contains("cpu")) {
    const std::string cores = facts.cores > 0 ? fmt::format(", {} cores a socket", facts.cores) : "";
    imported.notes.push_back(fmt::format(
        "the CPU is {}{}: {} stands for it; --set cpu=... names another of 'tbd-sim list cpus'",
        facts.cpu.empty() ? "not named" : in_quotes(facts.cpu) + ", not of the catalogue", cores, stand_in));
  }
  imported.notes.push_back(
      "networks to other machines are not in such a file: --network says which, where it is used");
  return imported;
}

}  // namespace tbdsim
