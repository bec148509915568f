#include "graphs/layers/boxes.h"

#include "graphs/layers/transfer.h"

namespace tbdsim {
namespace {

constexpr std::int64_t kCountWords = 2;
constexpr std::int64_t kOperatorNanoseconds = 8000;  // of the CPU: simulate/frameworks/pytorch.yaml, kernel

}  // namespace

Size word_bytes(const Size& words) { return words * kFp32Bytes; }

Kernel box_arithmetic(std::string_view op, const Size& rows, std::int64_t numbers, std::int64_t repeat) {
  const Shape shape{rows, {numbers}};
  const Size bytes = word_bytes(elements(shape));
  Kernel kernel = memory_kernel(KernelKind::elementwise, Phase::forward, op, shape, 1, bytes * 2, bytes);
  kernel.repeat = repeat;
  return kernel;
}

Kernel row_gather(const Size& rows, std::int64_t numbers) {
  const Shape shape{rows, {numbers}};
  const Size bytes = word_bytes(elements(shape));
  Kernel kernel =
      memory_kernel(KernelKind::gather, Phase::forward, "gather", shape, 0, bytes + word_bytes(rows), bytes);
  kernel.shape = MatrixShape{rows, numbers};
  return kernel;
}

Kernel read_count(std::int64_t operations) {
  Kernel kernel = device_to_host(fixed_size(kCountWords));
  const std::int64_t image = operations * kOperatorNanoseconds;
  kernel.host_nanoseconds = {-image, image};
  return kernel;
}

}  // namespace tbdsim
