#include "costmodel/profile/generation.h"

#include <algorithm>
#include <charconv>

namespace tbdsim {

Generation generation_of(std::string_view name) {
  const std::string_view library = name.substr(0, name.find_first_of("0123456789"));
  Generation generation{std::string(library), 0};
  std::from_chars(name.data() + library.size(), name.data() + name.size(), generation.version);
  return generation;
}

}  // namespace tbdsim
