#include "simulate/timeline/activation_offload.h"

#include <algorithm>
#include <vector>

#include "graphs/layers/transfer.h"

namespace tbdsim {
namespace {

// One offloaded activation: the same time to the host and back.
struct Copy {
  std::size_t last_forward;  // kernels
  std::size_t first_again;
  Seconds time;
};

std::vector<Copy> copies_of(std::span<const OffloadedActivation> activations, double batch,
                            const Calibration& calibration) {
  std::vector<Copy> copies;
  for (const OffloadedActivation& activation : activations) {
    copies.push_back({static_cast<std::size_t>(activation.last_forward),
                      static_cast<std::size_t>(activation.first_again),
                      estimate(device_to_host(activation.bytes, 1), batch, calibration).total});
  }
  return copies;
}

void sort_by_last_forward(std::vector<Copy>& copies) {
  std::sort(copies.begin(), copies.end(),
            [](const Copy& a, const Copy& b) { return a.last_forward < b.last_forward; });
}

void sort_by_first_again(std::vector<Copy>& copies) {
  std::stable_sort(copies.begin(), copies.end(),
                   [](const Copy& a, const Copy& b) { return a.first_again < b.first_again; });
}

}  // namespace

Seconds offload_stall(std::span<const OffloadedActivation> activations, const Timeline& timeline,
                      double batch, const Calibration& calibration) {
  if (activations.empty()) return Seconds(0);
  const std::vector<KernelSpan>& spans = timeline.kernels;
  std::vector<Copy> copies = copies_of(activations, batch, calibration);

  sort_by_last_forward(copies);
  Seconds copied_out;
  for (const Copy& copy : copies) copied_out = std::max(copied_out, spans[copy.last_forward].end) + copy.time;

  sort_by_first_again(copies);
  const Seconds backward = spans[copies.front().first_again].start;
  Seconds stall = std::max(Seconds(0), copied_out - backward);
  Seconds copied_back = backward + stall;
  for (const Copy& copy : copies) {
    copied_back += copy.time;
    stall = std::max(stall, copied_back - spans[copy.first_again].start);
  }
  return stall;
}

}  // namespace tbdsim
