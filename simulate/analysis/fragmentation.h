// Fragmentation of the allocator's memory by images of many sizes: blocks of one size do not fit the next
// image, and free memory serves fewer and fewer requests.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "graphs/dataset.h"
#include "graphs/model.h"
#include "simulate/prediction/prediction.h"
#include "simulate/prediction/resolve.h"

namespace tbdsim {

struct ImageSize {
  std::int64_t height = 0, width = 0;
  friend auto operator<=>(const ImageSize&, const ImageSize&) = default;
};

// The size of an image of this ratio (width / height) when it is scaled: the shorter side is
// sides.shorter, the longer one min(ceil(sides.shorter * max(ratio, 1 / ratio)), sides.longest).
[[nodiscard]] ImageSize scaled_image(double ratio, const ImageSides& sides);

// The sizes of `count` images whose ratios have these shares, evenly mixed. Sequences differ by `start`, 0
// to 1.
[[nodiscard]] std::vector<ImageSize> sequence_of_sizes(std::span<const RatioBin> ratios,
                                                       const ImageSides& sides, std::size_t count,
                                                       double start);

// Bytes that the allocator has reserved after 200 iterations on images of many sizes, the mean over five
// sequences. None if the variant or its data set has no distribution of sizes, if the scenario has one size,
// or if memory is planned ahead.
[[nodiscard]] std::optional<Bytes> reserved_over_sizes(const Prediction& prediction, const Resolver& resolve);

}  // namespace tbdsim
