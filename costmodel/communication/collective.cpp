#include "costmodel/communication/collective.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace tbdsim {
namespace {

constexpr double kOwnPart = 0.45;          // collective.h
constexpr double kTreeShare = 0.92;        // of the bandwidth: tuning.cc
constexpr double kNetworkLaunch = 8.4e-6;  // s: tuning.cc, baseLatencies, Simple

// hwLatencies of NET in tuning.cc, and the share of the bandwidth that carries data.
struct Protocol {
  double share;
  double ring_step;  // s, between domains
  double tree_step;
};
constexpr std::array<Protocol, 3> kProtocols = {
    {{0.5, 2.7e-6, 5e-6}, {0.92, 4e-6, 8.5e-6}, {1, 14e-6, 14e-6}}};

// Numbers of one collective in SI units.
struct Work {
  double inner, outer, ranks;
  double bytes;
  double rate;  // of the narrower links, of plain rings
  double launch;
  double step;  // within a domain
  double root;  // at these bytes
};

Work work_of(const CommGroup& group, Bytes bytes) {
  Work w{};
  w.inner = static_cast<double>(group.inner);
  w.outer = static_cast<double>(group.outer);
  w.ranks = w.inner * w.outer;
  w.bytes = bytes.si();
  const double within = group.within.si() * group.cost.efficiency;
  const double network = group.network.si() * w.inner;
  if (group.outer == 1)
    w.rate = within;
  else
    w.rate = group.inner == 1 ? network : std::min(within, network);
  w.launch = group.outer == 1 ? group.cost.launch.si() : std::max(group.cost.launch.si(), kNetworkLaunch);
  w.step = group.cost.step.si();
  w.root = group.cost.root.si() * std::sqrt(w.bytes / kMebi);
  return w;
}

double ring(const Work& w, double passes, bool out_of_place) {
  const double between = passes * (w.outer - 1);
  const double within = passes * (w.ranks - 1) - between;
  const double moved = (passes * (w.ranks - 1) + (out_of_place ? kOwnPart : 0)) / w.ranks * w.bytes / w.rate;
  const double fixed = w.launch + within * w.step + passes / 2 * w.root;
  if (w.outer == 1) return fixed + moved;
  double best = INFINITY;
  for (const Protocol& p : kProtocols) best = std::min(best, between * p.ring_step + moved / p.share);
  return fixed + best;
}

double tree(const Work& w) {
  if (w.outer == 1) return INFINITY;
  const double depth = static_cast<double>(std::bit_width(static_cast<std::uint64_t>(w.outer) - 1));
  const double fixed = w.launch + 2 * (w.inner - 1) * w.step + w.root;
  double best = INFINITY;
  for (const Protocol& p : kProtocols)
    best = std::min(best, 2 * depth * p.tree_step + 2 * w.bytes / (kTreeShare * p.share * w.rate));
  return fixed + best;
}

double all_reduce(const CommGroup& group, const Work& w, Bytes bytes) {
  if (group.outer > 1) return std::min(ring(w, 2, false), tree(w));
  const RankGroup inner{group.inner, group.within, group.switched, group.cost};
  const AllReduceRanks ranks{inner, {}};
  return std::min(ring(w, 2, false), all_reduce_time(AllReduceAlgorithm::in_switch, ranks, bytes).si());
}

double all_to_all(const CommGroup& group, const Work& w) {
  const double within = group.within.si() * group.cost.efficiency;
  double time = 0;
  if (group.inner > 1) time = (w.inner - 1 + kOwnPart) / w.ranks * w.bytes / within;
  double fixed = 1.5 * w.launch + w.root / 2;
  if (group.outer > 1) {
    time = std::max(time, (w.ranks - w.inner) / w.ranks * w.bytes / group.network.si());
    fixed += kProtocols.back().ring_step;
  }
  return fixed + time;
}

}  // namespace

Seconds collective_time(Collective collective, const CommGroup& group, Bytes bytes) {
  if (group.ranks() <= 1) return Seconds(0);
  const Work w = work_of(group, bytes);
  switch (collective) {
    case Collective::all_reduce:
      return Seconds(all_reduce(group, w, bytes));
    case Collective::all_gather:
    case Collective::reduce_scatter:
      return Seconds(ring(w, 1, true));
    case Collective::all_to_all:
      return Seconds(all_to_all(group, w));
    case Collective::broadcast: {  // in a pipeline of pieces
      const double last = w.outer > 1 ? kProtocols.back().ring_step : w.step;
      return Seconds(w.launch + last + w.bytes / w.rate + w.root / 2);
    }
    case Collective::send: {
      const double rate = group.outer > 1 ? group.network.si() : group.within.si() * group.cost.efficiency;
      return Seconds(w.launch + (group.outer > 1 ? kProtocols.back().ring_step : w.step) + w.bytes / rate);
    }
  }
  return Seconds(0);
}

}  // namespace tbdsim
