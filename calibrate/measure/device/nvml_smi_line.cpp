// Host only, apart from nvml.cpp so that it can be tested without a driver.
#include <charconv>

#include "calibrate/measure/device/nvml.h"

namespace tbdsim::measure {

Conditions parse_smi(const std::string& line) {
  constexpr double kMegahertz = 1e6;
  Conditions c;
  double* const numbers[] = {&c.sm_clock_hz, &c.memory_clock_hz, &c.power_limit_w, &c.temperature_c};
  std::size_t at = 0;
  for (std::size_t i = 0; at < line.size(); ++i) {
    const std::size_t comma = std::min(line.find(',', at), line.size());
    const std::size_t first = line.find_first_not_of(' ', at);
    const std::size_t last = line.find_last_not_of(" \r\n", comma - 1);
    const bool empty = first >= comma || last == std::string::npos || last < first;
    const std::string field = empty ? "" : line.substr(first, last + 1 - first);
    if (i < 4) {
      double value = 0;
      const auto end = field.data() + field.size();
      if (std::from_chars(field.data(), end, value).ptr == end) *numbers[i] = value;
    } else if (i == 4) {
      c.driver = field;
    }
    at = comma + 1;
  }
  c.sm_clock_hz *= kMegahertz;
  c.memory_clock_hz *= kMegahertz;
  return c;
}

}  // namespace tbdsim::measure
