// Gives a fuzz input to a reader that wants a path.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>

#include <sys/mman.h>
#include <unistd.h>

#include "hwspecs/base/error.h"

namespace tbdsim::fuzz {

// A file without a place on disk, for as long as the object lives.
class MemoryFile {
 public:
  MemoryFile(const std::uint8_t* data, std::size_t size) : descriptor_(memfd_create("fuzz", MFD_CLOEXEC)) {
    if (descriptor_ < 0 || ::write(descriptor_, data, size) != static_cast<ssize_t>(size)) std::abort();
  }
  ~MemoryFile() { ::close(descriptor_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  [[nodiscard]] std::filesystem::path path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }

 private:
  int descriptor_;
};

// Refusing bad input with one of our own errors is right; every other exception is a finding.
template <class Read>
int run(Read read) {
  try {
    read();
  } catch (const Error&) {
  }
  return 0;
}

inline void require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace tbdsim::fuzz
