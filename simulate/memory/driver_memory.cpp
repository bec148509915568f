#include "simulate/memory/driver_memory.h"

#include <cmath>

namespace tbdsim {

Bytes from_driver(Bytes asked, Bytes page) {
  constexpr Bytes kAligned(512);
  if (page == Bytes() || asked == Bytes()) return asked;
  const Bytes slab = page * 0.5;
  const Bytes aligned = kAligned * std::ceil(asked / kAligned);
  return aligned > slab ? page * std::ceil(asked / page) : slab * (1 / std::floor(slab / aligned));
}

}  // namespace tbdsim
