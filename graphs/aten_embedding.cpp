#include "graphs/aten_embedding.h"

namespace tbdsim {
namespace {

constexpr std::int64_t kIndexBytes = 8;
// Passes of CUB's radix sort of 64-bit keys, by eight bits at a time. Each reads and writes keys and places.
constexpr std::int64_t kSortPasses = 8;
// Launches over the indices beside them: a histogram and its sums, first indices of rows, numbers and places
// of parts (an H100's step_kernels).
constexpr std::int64_t kSmallLaunches = 8;

Kernel over_indices(const AtenEmbedding& embedding, std::string_view op, std::int64_t bytes,
                    std::int64_t repeat) {
  Kernel kernel;
  kernel.kind = KernelKind::elementwise;
  kernel.phase = embedding.phase;
  kernel.op = op;
  kernel.repeat = repeat;
  kernel.flops = embedding.indices;
  kernel.read_bytes = embedding.indices * bytes;
  kernel.written_bytes = embedding.indices * bytes;
  kernel.element_bytes = kIndexBytes;
  kernel.shape = VectorShape{embedding.indices};
  return kernel;
}

}  // namespace

std::vector<Kernel> gradient_kernels(const AtenEmbedding& embedding) {
  Kernel sum;
  sum.kind = KernelKind::gather;
  sum.phase = embedding.phase;
  sum.op = embedding.op;
  sum.flops = embedding.elements;
  sum.read_bytes = embedding.read;
  sum.written_bytes = embedding.written;
  sum.element_bytes = embedding.element_bytes;
  sum.access = Access::across;
  sum.shape = VectorShape{embedding.elements};
  return {over_indices(embedding, "sort", 2 * kIndexBytes, kSortPasses),
          over_indices(embedding, "segments", kIndexBytes, kSmallLaunches), std::move(sum)};
}

}  // namespace tbdsim
