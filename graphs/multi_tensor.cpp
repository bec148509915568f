#include "graphs/multi_tensor.h"

#include <algorithm>
#include <array>
#include <variant>

namespace tbdsim {
namespace {

// kChunkSize, depth_to_max_blocks, depth_to_max_tensors.
constexpr std::int64_t kChunk = 65'536;
constexpr std::int64_t kMostBlocks = 320;
constexpr std::array<std::size_t, 5> kMostTensors = {110, 64, 48, 36, 30};
constexpr std::int64_t kAtOnce = 512 * 4;  // elements of a block: kBlockSize threads, kILP each

// The rows of a launch are what its blocks load at once: a thread waits for one after another.
MatrixShape shape_of(const std::vector<TensorShare>& shares, const Size& elements) {
  const std::int64_t longest = std::ranges::max(shares, {}, &TensorShare::elements).elements;
  const std::int64_t loads = (std::min(longest, kChunk) - 1) / kAtOnce + 1;
  return {fixed_size(loads), (elements.fixed - 1) / loads + 1};
}

// A size's share of `part` of `whole` elements. What grows with the batch is not split.
Size share(const Size& size, std::int64_t part, std::int64_t whole) {
  if (part == whole) return size;
  if (size.fixed % whole == 0 && size.per_sample == 0) return {size.fixed / whole * part, 0};
  const double fraction = static_cast<double>(part) / static_cast<double>(whole);
  return {static_cast<std::int64_t>(static_cast<double>(size.fixed) * fraction),
          static_cast<std::int64_t>(static_cast<double>(size.per_sample) * fraction)};
}

}  // namespace

std::vector<std::vector<TensorShare>> multi_tensor_launches(std::span<const std::int64_t> elements,
                                                            std::int64_t lists) {
  const std::int64_t deepest = static_cast<std::int64_t>(kMostTensors.size());
  const std::size_t most_tensors =
      kMostTensors[static_cast<std::size_t>(std::clamp<std::int64_t>(lists, 1, deepest) - 1)];
  std::vector<std::vector<TensorShare>> launches;
  std::int64_t blocks = kMostBlocks;  // of the last launch, which is full at the start
  for (std::size_t t = 0; t < elements.size(); ++t) {
    std::int64_t left = elements[t];
    while (left > 0) {
      if (blocks == kMostBlocks || launches.back().size() == most_tensors) {
        launches.emplace_back();
        blocks = 0;
      }
      const std::int64_t taken = std::min((left - 1) / kChunk + 1, kMostBlocks - blocks);
      const std::int64_t part = std::min(left, taken * kChunk);
      launches.back().push_back({t, part});
      blocks += taken;
      left -= part;
    }
  }
  return launches;
}

std::vector<Kernel> multi_tensor_kernels(std::span<const Kernel> kernels, std::int64_t lists) {
  std::vector<std::int64_t> elements;
  elements.reserve(kernels.size());
  Size scratch;
  for (const Kernel& kernel : kernels) {
    const Size& of = std::get<VectorShape>(kernel.shape).elements;
    elements.push_back(of.per_sample == 0 ? of.fixed : kChunk);
    scratch += kernel.scratch_bytes;
  }
  std::vector<Kernel> launches;
  for (const std::vector<TensorShare>& shares : multi_tensor_launches(elements, lists)) {
    Kernel launch = kernels[shares.front().tensor];
    Size over;
    launch.flops = launch.read_bytes = launch.written_bytes = {};
    for (const TensorShare& part : shares) {
      const Kernel& kernel = kernels[part.tensor];
      const std::int64_t whole = elements[part.tensor];
      over += share(std::get<VectorShape>(kernel.shape).elements, part.elements, whole);
      launch.flops += share(kernel.flops, part.elements, whole);
      launch.read_bytes += share(kernel.read_bytes, part.elements, whole);
      launch.written_bytes += share(kernel.written_bytes, part.elements, whole);
    }
    launch.shape = VectorShape{over};
    if (over.per_sample == 0) {
      launch.shape = shape_of(shares, over);
      launch.thread_per_row = true;
    }
    launch.scratch_bytes = scratch;
    if (kernels.size() > 1) launch.layer = -1;
    launches.push_back(std::move(launch));
  }
  return launches;
}

}  // namespace tbdsim
