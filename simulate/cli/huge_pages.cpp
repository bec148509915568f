#include "simulate/cli/huge_pages.h"

#include <cstdlib>
#include <memory>

#include <sys/mman.h>

namespace tbdsim {

void use_huge_pages(std::size_t bytes) {
  constexpr std::size_t kPage = 2 << 20;
  void* const block = std::malloc(bytes);
  void* start = block;
  std::size_t left = bytes;
  if (block != nullptr && std::align(kPage, kPage, start, left) != nullptr)
    madvise(start, left, MADV_HUGEPAGE);
  std::free(block);  // the allocator keeps the block, and hands it out first
}

}  // namespace tbdsim
