// The XML of `lstopo --of xml`: packages (before hwloc 1.11 "sockets"), bridges, PCI devices and what drivers
// say of them.
#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "simulate/import/machine_facts.h"
#include "simulate/import/text_lines.h"
#include "simulate/import/xml_tree.h"

namespace tbdsim {
namespace {

constexpr std::size_t kMostGpus = 1'000;
constexpr double kMega = 1e6;

std::string_view info_of(const XmlElement& object, std::string_view name) {
  for (const XmlElement& info : object.children) {
    if (info.name == "info" && info.attribute("name") == name) return info.attribute("value");
  }
  return {};
}

// The first such info of an object or of what is below it.
std::string_view info_below(const XmlElement& object, std::string_view name) {
  if (const std::string_view own = info_of(object, name); !own.empty()) return own;
  for (const XmlElement& child : object.children) {
    if (const std::string_view found = info_below(child, name); !found.empty()) return found;
  }
  return {};
}

// The name of the processor; of ARM's, which have none, the numbers of designer and part: "ARM part 0xd4f".
std::string processor_of(const XmlElement& machine) {
  constexpr std::string_view kArm = "0x41";
  if (const std::string_view model = info_below(machine, "CPUModel"); !model.empty())
    return std::string(trimmed(model));
  if (info_below(machine, "CPUImplementer") != kArm) return {};
  return "ARM part " + std::string(info_below(machine, "CPUPart"));
}

// "0302 [10de:1db8] ...": a display (class 03) of NVIDIA.
bool is_gpu(const XmlElement& device) {
  const std::string_view type = device.attribute("pci_type");
  return device.attribute("type") == "PCIDev" && type.starts_with("03") && holds(type, "[10de:");
}

struct Walk {
  MachineFacts facts;
  std::map<std::string, int> objects;  // GPU of each object of it, by gp_index
  int sockets = 0;
  int ports = 0;
  int cores = 0;
};

// Where an object lies: the socket, and the port and the bridges above it.
struct Place {
  int socket = 0;
  int port = -1;
  int bridges = 0;
};

void note_gpu(const XmlElement& device, const Place& place, Walk& walk) {
  const int number = static_cast<int>(walk.facts.slots.size());
  std::string name(info_below(device, "GPUModel"));
  if (name.empty()) {  // "GP102 [GeForce GTX 1080 Ti]"; hwloc 1 has it in the attribute "name"
    std::string_view device_name = info_of(device, "PCIDevice");
    if (device_name.empty()) device_name = device.attribute("name");
    const std::size_t first = device_name.find('[');
    const std::size_t last = device_name.rfind(']');
    if (first != std::string_view::npos && last != std::string_view::npos && first < last)
      name = std::string(device_name.substr(first + 1, last - first - 1));
  }
  walk.objects[std::string(device.attribute("gp_index"))] = number;
  for (const XmlElement& child : device.children)
    walk.objects[std::string(child.attribute("gp_index"))] = number;
  walk.facts.slots.push_back(
      {.gpu = name, .port = place.port < 0 ? walk.ports++ : place.port, .socket = place.socket});
}

void visit(const XmlElement& object, Place place, Walk& walk) {
  const std::string_view type = object.attribute("type");
  if (type == "Package" || type == "Socket") place.socket = walk.sockets++;
  if (type == "Core") ++walk.cores;
  if (type == "NUMANode") {
    const double bytes = leading_number(object.attribute("local_memory")).value_or(0);
    walk.facts.memory_size = Bytes(walk.facts.memory_size.value_or(Bytes(0)).si() + bytes);
  }
  if (type == "Bridge" && ++place.bridges == 2) place.port = walk.ports++;
  if (is_gpu(object) && walk.facts.slots.size() < kMostGpus) note_gpu(object, place, walk);
  for (const XmlElement& child : object.children) {
    if (child.name == "object") visit(child, place, walk);
  }
}

// Rates over NVLink of pairs of GPUs: "distances2" of that name, whose indexes are objects and whose values,
// row by row, are in MB/s of one direction.
void read_nvlinks(const XmlElement& distances, Walk& walk) {
  std::vector<std::string> objects;
  std::vector<double> values;
  for (const XmlElement& part : distances.children) {
    for (const std::string& word : words_of(part.text)) {
      const std::size_t colon = word.find(':');  // "OSDev:802" where kinds differ
      if (part.name == "indexes")
        objects.push_back(colon == std::string::npos ? word : word.substr(colon + 1));
      if (part.name == "u64values") values.push_back(leading_number(word).value_or(0));
    }
  }
  const std::size_t n = objects.size();
  if (n > kMostGpus || values.size() != n * n) return;
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = i + 1; j < n; ++j) {
      const auto a = walk.objects.find(objects[i]);
      const auto b = walk.objects.find(objects[j]);
      const double rate = values[i * n + j];
      if (rate <= 0 || a == walk.objects.end() || b == walk.objects.end() || a->second == b->second) continue;
      walk.facts.nvlinks.push_back({std::min(a->second, b->second), std::max(a->second, b->second), 0});
      walk.facts.nvlink_rates.emplace_back(rate * kMega);
    }
  }
}

}  // namespace

MachineFacts read_hwloc_xml(std::string_view text, const std::string& file) {
  const XmlElement topology = read_xml(text, file);
  Walk walk;
  walk.facts.tool = "hwloc";
  for (const XmlElement& child : topology.children) {
    if (child.name != "object") continue;
    const std::string_view product = info_of(child, "DMIProductName");
    if (!product.empty()) walk.facts.title = std::string(product);
    walk.facts.cpu = processor_of(child);
    visit(child, {}, walk);
  }
  if (walk.facts.slots.empty())
    fail_at(file, 0, "names no GPU; expected lstopo --of xml with PCI devices (--whole-io)");
  for (const XmlElement& child : topology.children) {
    if (child.name.starts_with("distances") && child.attribute("name") == "NVLinkBandwidth")
      read_nvlinks(child, walk);
  }
  std::map<int, int> of_port;
  for (const GpuSlot& slot : walk.facts.slots) walk.facts.pcie_pairs |= ++of_port[slot.port] > 1;
  walk.facts.sockets = std::max(walk.sockets, 1);
  walk.facts.cores = walk.cores / walk.facts.sockets;
  return std::move(walk.facts);
}

}  // namespace tbdsim
