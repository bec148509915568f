// The page of `tbd-sim report`: the figures of the TBD paper for any hardware.
#pragma once

#include "hwspecs/base/catalog.h"
#include "simulate/report/html/page.h"
#include "simulate/report/html/report_data.h"

namespace tbdsim {

// The page with every section that has something to show. `catalog`: of the files whose sources it lists.
[[nodiscard]] Page report_page(const ReportData& data, const Catalog& catalog);

}  // namespace tbdsim
