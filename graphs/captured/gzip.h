// Decompression of files in gzip's format.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tbdsim {

[[nodiscard]] bool is_gzip(std::string_view bytes);

// The decompressed bytes, of all gzip files that were put one behind another. Throws std::runtime_error,
// which says what is wrong, for data that is no gzip or makes more than `most` bytes.
[[nodiscard]] std::string decompressed(std::string_view bytes, std::size_t most);

}  // namespace tbdsim
