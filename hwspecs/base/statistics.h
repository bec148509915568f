// Statistics of a list of numbers.
#pragma once

#include <vector>

namespace tbdsim {

// The value below which a share q (0 to 1) of the sorted values lies, interpolated between neighbours:
// position q * (n - 1) of n values. There must be at least one.
[[nodiscard]] double quantile(const std::vector<double>& sorted, double q);

// The middle value, or the mean of the two in the middle. There must be at least one.
[[nodiscard]] double median(std::vector<double> values);

}  // namespace tbdsim
