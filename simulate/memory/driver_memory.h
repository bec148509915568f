// What the driver hands out for a request of a pool that comes to it block by block: whole pages or, up to
// half a page, an even part of a slab of half a page, in multiples of 512 B. A little more than half a MiB
// thus takes 1 MiB, a little more than 2 MiB takes 4.
//
// Source of the pages: memory_plan.h, driver_page. The slab's size is fitted: Sockeye with recomputed
// attention, batch 256, a TITAN Xp (fit rows), is 2 % off; with slabs of a whole page 17 %.
#pragma once

#include "hwspecs/base/quantity.h"

namespace tbdsim {

// As asked for where `page` is 0.
[[nodiscard]] Bytes from_driver(Bytes asked, Bytes page);

}  // namespace tbdsim
