// Names of virtual GPUs, which a hypervisor makes of a card: "GRID T4-8Q", "NVIDIA A40-48Q", "GRID
// A100-3-20C".
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hwspecs/base/quantity.h"

namespace tbdsim {

struct VirtualGpu {
  std::string card;  // of the catalogue
  Bytes memory;      // its frame buffer
  int slices = 0;    // of a card that MIG divides; 0: all SMs, which machines take in turn
  bool operator==(const VirtualGpu&) const = default;
};

// The codes of cards in such names: "A100DX".
[[nodiscard]] std::vector<std::string> virtual_gpu_codes();

// The virtual GPU of so named; none for the name of another GPU, or of a card that the catalogue does not
// have.
[[nodiscard]] std::optional<VirtualGpu> virtual_gpu(std::string_view called);

}  // namespace tbdsim
