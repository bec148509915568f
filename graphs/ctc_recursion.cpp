#include "graphs/ctc_recursion.h"

namespace tbdsim {
namespace {

// The logarithm of a sum of three exponentials and a product: maximum (2), differences and exponentials (6),
// sum (2), logarithm (1), what is added (2).
constexpr std::int64_t kStateFlops = 13;

}  // namespace

Kernel ctc_kernel(const CtcRecursion& recursion) {
  Kernel kernel;
  kernel.kind = KernelKind::reduction;
  kernel.phase = recursion.phase;
  kernel.op = recursion.op;
  kernel.flops = recursion.positions * recursion.states * kStateFlops;
  kernel.read_bytes = recursion.read;
  kernel.written_bytes = recursion.written;
  kernel.shape = MatrixShape{recursion.positions, recursion.states};
  return kernel;
}

}  // namespace tbdsim
