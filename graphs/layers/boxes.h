// Kernels on the boxes of a detector: anchors, proposals, regions. Boxes are fp32 under every precision.
#pragma once

#include <string_view>

#include "graphs/layer.h"

namespace tbdsim {

inline constexpr std::int64_t kBoxNumbers = 4;     // two corners, or a centre and a size
inline constexpr std::int64_t kRegionNumbers = 5;  // a box and the image it is in
inline constexpr std::int64_t kMostBoxes = 1'000'000;

// Bytes of fp32 numbers or 32-bit indices.
[[nodiscard]] Size word_bytes(const Size& words);

// `repeat` element-wise operations, each on two operands of rows x numbers.
[[nodiscard]] Kernel box_arithmetic(std::string_view op, const Size& rows, std::int64_t numbers,
                                    std::int64_t repeat);

// Rows of `numbers` looked up by their indices.
[[nodiscard]] Kernel row_gather(const Size& rows, std::int64_t numbers);

// The host waits for a 64-bit number, such as how many rows a mask selects. A program that loops over images
// launches `operations` for each; those of the first image are kernels of their own.
[[nodiscard]] Kernel read_count(std::int64_t operations = 0);

}  // namespace tbdsim
