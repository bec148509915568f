#include "simulate/timeline/activation_offload.h"

#include <algorithm>
#include <vector>

#include "graphs/layers/transfer.h"

namespace tbdsim {
namespace {

struct Copy {
  std::size_t last_forward, first_again;
  Seconds time;
};

}  // namespace

Seconds offload_stall(std::span<const OffloadedActivation> maps, const Timeline& timeline, double batch,
                      const Calibration& calibration) {
  if (maps.empty()) return Seconds(0);
  std::vector<Copy> copies;
  std::size_t turn = timeline.kernels.size();  // the first kernel that reads a map again
  for (const OffloadedActivation& map : maps) {
    copies.push_back({static_cast<std::size_t>(map.last_forward), static_cast<std::size_t>(map.first_again),
                      estimate(device_to_host(map.bytes, 1), batch, calibration).total});
    turn = std::min(turn, copies.back().first_again);
  }
  const auto& spans = timeline.kernels;
  std::sort(copies.begin(), copies.end(),
            [](const Copy& a, const Copy& b) { return a.last_forward < b.last_forward; });
  Seconds out;
  for (const Copy& copy : copies) out = std::max(out, spans[copy.last_forward].end) + copy.time;
  Seconds late = std::max(Seconds(0), out - spans[turn].start);
  std::stable_sort(copies.begin(), copies.end(),
                   [](const Copy& a, const Copy& b) { return a.first_again < b.first_again; });
  Seconds back = spans[turn].start + late;
  for (const Copy& copy : copies) {
    back += copy.time;
    late = std::max(late, back - spans[copy.first_again].start);
  }
  return late;
}

}  // namespace tbdsim
