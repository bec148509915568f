// What the catalogue holds: `tbd-sim list`.
#pragma once

#include <span>
#include <string_view>

#include "hwspecs/base/sheet.h"
#include "simulate/library.h"

namespace tbdsim {

struct Listing {
  std::string_view name;  // "gpus"
  std::string_view what;
  Sheet (*sheet)(Library& library);
};

[[nodiscard]] std::span<const Listing> listings();

}  // namespace tbdsim
