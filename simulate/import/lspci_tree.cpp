// The tree of `lspci -tv`:
//
//   -+-[0000:80]-+-02.0-[81-85]----00.0-[82-85]--+-08.0-[83]----00.0  NVIDIA Corporation GP102 [GeForce GTX 1080 Ti]
//    |                                           \-10.0-[84]----00.0  NVIDIA Corporation GP102 [GeForce GTX 1080 Ti]
//
// A line belongs below the last bridge that begins left of its own first branch.
#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "simulate/import/machine_facts.h"
#include "simulate/import/text_lines.h"

namespace tbdsim {
namespace {

constexpr std::size_t kDeepest = 64;
constexpr std::size_t kMostGpus = 1'000;

// A root complex "[0000:80]" or a bridge "02.0-[81-85]".
struct Node {
  std::size_t column;
  std::string text;
};

bool is_hex(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

// The length of a device "00.0" at a place; 0 where there is none.
std::size_t device_at(std::string_view line, std::size_t at) {
  const bool device = at + 4 <= line.size() && is_hex(line[at]) && is_hex(line[at + 1]) &&
                      line[at + 2] == '.' && line[at + 3] >= '0' && line[at + 3] <= '7';
  return device ? 4 : 0;
}

// "GP102 [GeForce GTX 1080 Ti] (rev a1)" -> "GeForce GTX 1080 Ti"; the text itself without brackets.
std::string name_in(std::string_view text) {
  const std::size_t first = text.find('[');
  const std::size_t last = text.find(']', first == std::string_view::npos ? 0 : first);
  if (last == std::string_view::npos || first == std::string_view::npos) return std::string(trimmed(text));
  return std::string(text.substr(first + 1, last - first - 1));
}

bool is_gpu(std::string_view device, std::string_view text) {
  if (!device.ends_with(".0") || !text.starts_with("NVIDIA")) return false;
  for (const char* other : {"Audio", "USB", "NVSwitch", "Bridge", "UCSI", "Serial"}) {
    if (holds(text, other)) return false;
  }
  return true;
}

// Host bridges of the first socket of a two-socket server have the lower half of the bus numbers.
int socket_of(std::string_view root) {
  const std::size_t colon = root.find(':');
  if (colon == std::string_view::npos || colon + 1 >= root.size()) return 0;
  return root[colon + 1] >= '8' ? 1 : 0;
}

class TreeReader {
 public:
  explicit TreeReader(const std::string& file) : file_(file) {}

  void read(std::string_view line) {
    ++number_;
    const std::size_t first = line.find_first_not_of(" |");
    if (first == std::string_view::npos) return;
    while (!path_.empty() && path_.back().column >= first) path_.pop_back();
    for (std::size_t at = first; at < line.size();) {
      const std::size_t device = device_at(line, at);
      if (line[at] == '[' || (device > 0 && line.substr(at + device).starts_with("-["))) {
        const std::size_t end = line.find(']', at);
        if (end == std::string_view::npos) fail_at(file_, number_, "'[' without ']'; expected lspci -tv");
        if (path_.size() >= kDeepest) fail_at(file_, number_, "nests deeper than 64; expected lspci -tv");
        path_.push_back({at, std::string(line.substr(at, end - at + 1))});
        at = end + 1;
      } else if (device > 0) {
        add(line.substr(at, device), trimmed(line.substr(at + device)));
        return;
      } else {
        ++at;
      }
    }
  }

  MachineFacts facts() {
    if (facts_.slots.empty())
      fail_at(file_, 0, "names no GPU; expected lspci -tv of a machine with NVIDIA cards");
    std::vector<int> sockets;
    for (const GpuSlot& slot : facts_.slots) sockets.push_back(slot.socket);
    facts_.sockets = *std::max_element(sockets.begin(), sockets.end()) + 1;
    facts_.tool = "lspci -tv";
    facts_.sockets_by = "by the numbers of the buses";
    return std::move(facts_);
  }

 private:
  void add(std::string_view device, std::string_view text) {
    if (text.starts_with("Advanced Micro Devices") && holds(text, "Root Complex"))
      facts_.cpu = "AMD processor";
    if (!is_gpu(device, text)) return;
    if (facts_.slots.size() >= kMostGpus) fail_at(file_, number_, "more than 1000 GPUs; expected a machine");
    // The root port is the first bridge below the root complex.
    const std::string root = path_.empty() ? "" : path_.front().text;
    const std::string port = root + (path_.size() > 1 ? path_[1].text : std::string(device));
    const auto [at, is_new] = ports_.emplace(port, static_cast<int>(ports_.size()));
    facts_.pcie_pairs |= !is_new;
    facts_.slots.push_back({.gpu = name_in(text), .port = at->second, .socket = socket_of(root)});
  }

  const std::string& file_;
  int number_ = 0;
  std::vector<Node> path_;
  std::map<std::string, int> ports_;
  MachineFacts facts_;
};

}  // namespace

MachineFacts read_lspci_tree(std::string_view text, const std::string& file) {
  TreeReader reader(file);
  for (const std::string& line : lines_of(text)) reader.read(line);
  return reader.facts();
}

}  // namespace tbdsim
