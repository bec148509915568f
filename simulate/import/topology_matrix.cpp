// The matrix of `nvidia-smi topo -m`: how each pair of GPUs is joined.
//
//   NV<n>  n NVLinks            PIX, PXB  below one PCIe root port, over one or several switches
//   PHB    over a host bridge   NODE, SYS (SOC)  between host bridges of a socket, between sockets
#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include <fmt/format.h>

#include "hwspecs/base/suggest.h"
#include "simulate/import/machine_facts.h"
#include "simulate/import/text_lines.h"

namespace tbdsim {
namespace {

constexpr std::size_t kMostGpus = 1'000;
constexpr int kMostLinks = 1'000;

bool is_gpu(std::string_view word) {
  return word.starts_with("GPU") && word.size() > 3 &&
         std::all_of(word.begin() + 3, word.end(), [](char c) { return c >= '0' && c <= '9'; });
}

struct Row {
  int line = 0;
  std::vector<std::string> cells;  // towards each GPU, then each network card
  std::string affinity;            // of CPU cores
};

struct Matrix {
  std::size_t gpus = 0;
  std::size_t columns = 0;  // GPUs and network cards
  std::vector<Row> rows;
};

// The words of a line without the marks of an underlined header, which copies of a terminal keep: "[4mGPU0".
std::vector<std::string> plain_words(std::string line) {
  for (const std::string_view mark : {"[4m", "[0m"}) {
    if (const std::size_t at = line.find(mark); at != std::string::npos) line.erase(at, mark.size());
  }
  return words_of(line);
}

// The columns of a header are single words up to "CPU", of "CPU Affinity".
Matrix read_matrix(std::string_view text, const std::string& file) {
  Matrix matrix;
  int number = 0;
  for (const std::string& line : lines_of(text)) {
    ++number;
    const std::vector<std::string> words = plain_words(line);
    if (words.empty() || !is_gpu(words[0])) continue;
    if (matrix.gpus == 0) {
      const bool header = words.size() == 1 || is_gpu(words[1]) || words[1] == "CPU" ||
                          words[1].starts_with("mlx") || words[1].starts_with("NIC");
      if (!header) continue;
      // GPUs come first: what is called so behind other columns is none.
      matrix.gpus =
          static_cast<std::size_t>(std::find_if_not(words.begin(), words.end(), is_gpu) - words.begin());
      matrix.columns = static_cast<std::size_t>(std::find(words.begin(), words.end(), "CPU") - words.begin());
      if (matrix.gpus > kMostGpus) fail_at(file, number, "more than 1000 GPUs; expected a machine");
      continue;
    }
    if (matrix.rows.size() == matrix.gpus) break;
    if (words.size() < matrix.columns + 1)
      fail_at(file, number,
              fmt::format("{} words; expected {} and how it is joined to each of {} columns", words.size(),
                          words[0], matrix.columns));
    Row row{.line = number, .cells = {}, .affinity = {}};
    row.cells.assign(words.begin() + 1, words.begin() + 1 + static_cast<std::ptrdiff_t>(matrix.columns));
    if (words.size() > matrix.columns + 1) row.affinity = words[matrix.columns + 1];
    matrix.rows.push_back(std::move(row));
  }
  if (matrix.gpus == 0) fail_at(file, 0, "no row of GPUs; expected a matrix of nvidia-smi topo -m");
  if (matrix.rows.size() != matrix.gpus)
    fail_at(file, 0, fmt::format("{} rows for {} GPUs; expected one each", matrix.rows.size(), matrix.gpus));
  return matrix;
}

// Number of NVLinks of a cell; 0 for one that names another way. Throws for an unknown one.
int links_of(const Row& row, std::size_t column, const std::string& file) {
  const std::string& cell = row.cells[column];
  if (cell.starts_with("NV")) {
    const auto links = leading_number(std::string_view(cell).substr(2));
    if (links && *links >= 1 && *links <= kMostLinks) return static_cast<int>(*links);
  }
  for (const char* known : {"X", "PIX", "PXB", "PHB", "NODE", "SYS", "SOC", "PSB"}) {
    if (cell == known) return 0;
  }
  fail_at(file, row.line, in_quotes(cell) + "; expected X, NV<links>, PIX, PXB, PHB, NODE or SYS");
}

bool below_one_port(const std::string& cell) { return cell == "PIX" || cell == "PXB" || cell == "PSB"; }
bool within_socket(const std::string& cell) {
  return below_one_port(cell) || cell == "PHB" || cell == "NODE";
}

// Numbers of groups, from 0 in the order of their first members, of members that `joined` pairs join.
template <class Joined>
std::vector<int> groups_of(std::size_t members, Joined joined) {
  std::vector<std::size_t> parent(members);
  std::iota(parent.begin(), parent.end(), std::size_t{0});
  const auto root = [&](std::size_t i) {
    while (parent[i] != i) i = parent[i];
    return i;
  };
  for (std::size_t i = 0; i < members; ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (joined(i, j)) parent[std::max(root(i), root(j))] = std::min(root(i), root(j));
    }
  }
  std::map<std::size_t, int> number;
  std::vector<int> groups;
  for (std::size_t i = 0; i < members; ++i)
    groups.push_back(number.emplace(root(i), static_cast<int>(number.size())).first->second);
  return groups;
}

constexpr std::size_t kMostSockets = 2;  // of a server with GPUs

// The CPU cores near each GPU, "48-63,176-191", by their first number; none where only one set is named.
std::vector<std::string> affinities_of(const Matrix& matrix) {
  std::set<std::string> distinct;
  for (const Row& row : matrix.rows) distinct.insert(row.affinity);
  if (distinct.size() < 2 || distinct.contains("") || distinct.contains("N/A")) return {};
  std::vector<std::string> sorted(distinct.begin(), distinct.end());
  std::ranges::stable_sort(sorted, {},
                           [](const std::string& cores) { return leading_number(cores).value_or(0); });
  return sorted;
}

// Sockets by the CPU cores near each GPU where several sets of them are named, else by the ways of the
// matrix. More than two sets are NUMA nodes, as EPYC has several of a socket: the upper half is the second's.
std::vector<int> sockets_of(const Matrix& matrix) {
  const std::vector<std::string> affinities = affinities_of(matrix);
  const auto node = [&](std::size_t i) {
    return static_cast<std::size_t>(std::ranges::find(affinities, matrix.rows[i].affinity) -
                                    affinities.begin());
  };
  if (affinities.size() > kMostSockets)
    return groups_of(matrix.gpus, [&](std::size_t i, std::size_t j) {
      return node(i) * kMostSockets / affinities.size() == node(j) * kMostSockets / affinities.size();
    });
  if (!affinities.empty())
    return groups_of(matrix.gpus, [&](std::size_t i, std::size_t j) { return node(i) == node(j); });
  return groups_of(matrix.gpus, [&](std::size_t i, std::size_t j) {
    const std::string& cell = matrix.rows[i].cells[j];
    return cell != "SYS" && cell != "SOC";
  });
}

}  // namespace

MachineFacts read_topology_matrix(std::string_view text, const std::string& file) {
  const Matrix matrix = read_matrix(text, file);
  MachineFacts facts{
      .tool = "nvidia-smi topo -m", .title = {}, .slots = {}, .nvlinks = {}, .nvlink_rates = {}, .cpu = {}};
  for (std::size_t i = 0; i < matrix.gpus; ++i) {
    for (std::size_t j = 0; j < matrix.gpus; ++j) {
      const int links = links_of(matrix.rows[i], j, file);
      if ((i == j) != (matrix.rows[i].cells[j] == "X") || matrix.rows[i].cells[j] != matrix.rows[j].cells[i])
        fail_at(
            file, matrix.rows[i].line,
            fmt::format("GPU{} to GPU{} is {} and back {}; expected X at a GPU itself and one way for a pair",
                        i, j, in_quotes(matrix.rows[i].cells[j]), in_quotes(matrix.rows[j].cells[i])));
      if (links > 0 && i < j) facts.nvlinks.push_back({static_cast<int>(i), static_cast<int>(j), links});
      facts.pcie_pairs |= within_socket(matrix.rows[i].cells[j]);
    }
  }
  // GPUs whose NVLinks hide the way over PCI Express share a root port where they share it with a network
  // card.
  const std::vector<int> ports = groups_of(matrix.gpus, [&](std::size_t i, std::size_t j) {
    if (below_one_port(matrix.rows[i].cells[j])) return true;
    for (std::size_t card = matrix.gpus; card < matrix.columns; ++card) {
      if (below_one_port(matrix.rows[i].cells[card]) && below_one_port(matrix.rows[j].cells[card]))
        return true;
    }
    return false;
  });
  const std::vector<int> sockets = sockets_of(matrix);
  for (std::size_t i = 0; i < matrix.gpus; ++i) {
    // GPUs below one port have one socket, that of the first of them, whatever their affinities say.
    const auto first =
        static_cast<std::size_t>(std::find(ports.begin(), ports.end(), ports[i]) - ports.begin());
    facts.slots.push_back({.gpu = {}, .port = ports[i], .socket = sockets[first]});
  }
  facts.sockets = *std::max_element(sockets.begin(), sockets.end()) + 1;
  const std::size_t nodes = affinities_of(matrix).size();
  if (nodes > kMostSockets)
    facts.sockets_by = fmt::format("two sockets of the {} NUMA nodes that CPU affinities name", nodes);
  return facts;
}

}  // namespace tbdsim
