// Tables of the catalogue, one for each kind of file: `tbd-sim list`.
#pragma once

#include <span>
#include <string_view>

#include "hwspecs/base/catalog.h"
#include "hwspecs/base/table.h"

namespace tbdsim {

struct Listing {
  std::string_view name;  // "gpus"
  std::string_view what;
  Table (*table)(const Catalog& catalog);
};

[[nodiscard]] std::span<const Listing> listings();

}  // namespace tbdsim
