// Memory that an allocator keeps where images come in many sizes: blocks of one size do not fit the next
// image, and what is free serves fewer and fewer requests.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "graphs/dataset.h"
#include "graphs/model.h"
#include "simulate/prediction/prediction.h"
#include "simulate/workload/spec_cache.h"

namespace tbdsim {

struct ImageSize {
  std::int64_t height = 0, width = 0;
  friend auto operator<=>(const ImageSize&, const ImageSize&) = default;
};

// As scaled: sides.shorter by sides.shorter x ratio, rounded up, sides.longest at the most.
[[nodiscard]] ImageSize scaled_image(double ratio, const ImageSides& sides);

// `count` images of these shares, mixed evenly; sequences differ by their start, 0 to 1.
[[nodiscard]] std::vector<ImageSize> sequence_of_sizes(std::span<const RatioBin> ratios,
                                                       const ImageSides& sides, std::size_t count,
                                                       double start);

// What the allocator has taken from the card after 200 iterations on images of many sizes, the mean over
// five sequences. None where the variant or its data set does not say which sizes come, where one size was
// asked for, or where memory is planned ahead.
[[nodiscard]] std::optional<Bytes> reserved_over_sizes(const Prediction& prediction, SpecCache& specs);

}  // namespace tbdsim
