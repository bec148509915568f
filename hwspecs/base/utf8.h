// Checks that bytes are UTF-8. Uses the standard library only, see csv.h.
#pragma once

#include <cstddef>
#include <string_view>

namespace tbdsim {

// Number of bytes of the first character: 1 to 4; 0 where the bytes are no UTF-8 (RFC 3629: no overlong
// forms, no surrogates, nothing above U+10FFFF). `text` must not be empty.
[[nodiscard]] std::size_t utf8_length(std::string_view text);

[[nodiscard]] bool is_utf8(std::string_view text);

}  // namespace tbdsim
