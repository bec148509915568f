// Matrix products. Matrices are stored by rows: C = A * B is, by columns as cuBLAS has it, C' = B' * A', so
// that B comes first there.
#include <algorithm>

#include "graphs/captured/operators/operators.h"

namespace tbdsim {
namespace {

// True if the columns of a matrix, the last two dimensions, are what is contiguous.
bool is_transposed(const CapturedTensor& matrix) {
  const std::size_t rank = matrix.shape.size();
  const bool column = matrix.strides[rank - 2] == fixed_size(1) && matrix.shape[rank - 2] != fixed_size(1);
  return column && matrix.strides[rank - 1] != fixed_size(1);
}

// Real numbers of one of the operands. A complex product has as many multiply-adds as a real one of matrices
// with twice the columns of A and twice the rows of C: four for each.
std::int64_t parts_of(const CapturedTensor& matrix) {
  return matrix.dtype == Dtype::c64 || matrix.dtype == Dtype::c128 ? 2 : 1;
}

struct Product {
  const CapturedTensor& a;
  const CapturedTensor& b;
  const CapturedTensor& c;
  bool reads_c = false;
};

// A product with a vector takes cuBLAS' kernels for these (gemvx, gemv2N, dot_kernel), which read the matrix
// once, where tiles of a product would leave most of the GPU idle. In this project's records of an H100
// (kernels.csv, 18 calls of 0.2 to 0.85 million numbers in fp32 and TF32) they take 2.9 us and read 0.9
// numbers a clock and multiprocessor: about what reductions across memory do (own_kernel_time.h).
bool has_vector(const GemmShape& shape) {
  return (shape.m == fixed_size(1) || shape.n == fixed_size(1)) && shape.k != fixed_size(1);
}

Kernel product_kernel(OperatorSite& site, const Product& p) {
  const std::size_t rank = p.a.shape.size();
  if (rank < 2 || p.b.shape.size() != rank || p.c.shape.size() != rank)
    site.fail("has operands of ranks " + std::to_string(rank) + " and " + std::to_string(p.b.shape.size()) +
              "; expected matrices");
  GemmShape shape{.m = p.b.shape[rank - 1],
                  .n = p.a.shape[rank - 2],
                  .k = p.a.shape[rank - 1],
                  .transpose_a = is_transposed(p.b),
                  .transpose_b = is_transposed(p.a)};
  for (std::size_t i = 0; i + 2 < rank; ++i) shape.batch = site.product(shape.batch, p.a.shape[i]);
  const std::int64_t parts = parts_of(p.a);
  shape.m = shape.m * parts;
  shape.k = shape.k * parts;
  Kernel kernel;
  kernel.kind = KernelKind::gemm;
  kernel.phase = site.phase;
  kernel.op = "matmul";
  kernel.math = math_of(p.a.dtype, site.how.precision.math);
  kernel.macs = site.product(p.c.elements, shape.k) * parts;
  kernel.flops = kernel.macs * 2;
  kernel.element_bytes = bytes_of(p.a.dtype) / parts;
  kernel.read_bytes = bytes_of(p.a) + bytes_of(p.b);
  if (p.reads_c) kernel.read_bytes += bytes_of(p.c);
  kernel.written_bytes = bytes_of(p.c);
  kernel.shape = shape;
  if (has_vector(shape)) {
    kernel.kind = KernelKind::reduction;
    kernel.math = MathType::fp32;
    kernel.access = Access::across;
    kernel.shape = VectorShape{p.a.elements + p.b.elements};
  }
  return kernel;
}

// The mean of sizes that `parts` share.
Size mean_of(const Size& all, std::int64_t parts) {
  return {(all.fixed + parts - 1) / parts, (all.per_sample + parts - 1) / parts};
}

// A bias for each column is added by the product's epilogue; any other summand is copied into the result
// first, to which the product adds (aten/native/cuda/Blas.cpp, addmm_out_cuda_impl).
void lower_sum_of_products(OperatorSite& site) {
  const CapturedTensor& summand = site.tensor(0);
  const CapturedTensor& c = site.output(0);
  const bool bias = summand.elements != c.elements;
  if (!bias || site.how.lowering.product_bias == Composition::composite) {
    Kernel copy = bytes_kernel(KernelKind::elementwise, site.phase, bias ? "bias_add" : "copy", c.elements, 0,
                               bytes_of(summand), bytes_of(c), bytes_of(c.dtype));
    site.emit(std::move(copy));
    site.emit(product_kernel(site, {site.tensor(1), site.tensor(2), c, true}));
    return;
  }
  site.emit(product_kernel(site, {site.tensor(1), site.tensor(2), c}));
}

}  // namespace

void lower_mm(OperatorSite& site) {
  site.emit(product_kernel(site, {site.tensor(0), site.tensor(1), site.output(0)}));
}
void lower_bmm(OperatorSite& site) { lower_mm(site); }
void lower_addmm(OperatorSite& site) { lower_sum_of_products(site); }
void lower_baddbmm(OperatorSite& site) { lower_sum_of_products(site); }

// aten._grouped_mm (a, b, offsets, ...), the products of a mixture's experts in one call: rows of `a` belong
// to one of the matrices of `b`, or columns of `a` and rows of `b` to one result. Offsets are values that a
// capture has not: the rows are taken as shared out evenly.
void lower_grouped_mm(OperatorSite& site) {
  const CapturedTensor& a = site.tensor(0);
  const CapturedTensor& b = site.tensor(1);
  const CapturedTensor& c = site.output(0);
  const std::size_t rank_a = a.shape.size(), rank_b = b.shape.size();
  if (rank_a == 3 && rank_b == 3) return lower_mm(site);
  if (rank_a < 2 || rank_b < 2 || rank_a + rank_b > 5)
    site.fail("has operands of ranks " + std::to_string(rank_a) + " and " + std::to_string(rank_b) +
              "; expected matrices or lists of matrices");
  const CapturedTensor& list = rank_a == 3 ? a : rank_b == 3 ? b : c;
  const std::int64_t experts = std::max<std::int64_t>(1, site.fixed(list.shape[0]));
  GemmShape shape{.m = b.shape[rank_b - 1],
                  .n = a.shape[rank_a - 2],
                  .k = a.shape[rank_a - 1],
                  .batch = fixed_size(experts),
                  .transpose_a = is_transposed(b),
                  .transpose_b = is_transposed(a),
                  .grouped = true};
  Size& shared = rank_a == 3 ? shape.m : rank_b == 3 ? shape.n : shape.k;
  Kernel kernel;
  kernel.kind = KernelKind::gemm;
  kernel.phase = site.phase;
  kernel.op = "matmul";
  kernel.math = math_of(a.dtype, site.how.precision.math);
  kernel.macs = site.product(site.product(shape.n, shape.m), shape.k);
  kernel.flops = kernel.macs * 2;
  kernel.element_bytes = bytes_of(a.dtype);
  kernel.read_bytes = bytes_of(a) + bytes_of(b);
  kernel.written_bytes = bytes_of(c);
  shared = mean_of(shared, experts);
  kernel.shape = shape;
  site.emit(std::move(kernel));
}

// Bound by the bytes of its operands.
void lower_dot(OperatorSite& site) {
  const CapturedTensor& a = site.tensor(0);
  site.emit(bytes_kernel(KernelKind::reduction, site.phase, site.entry.name, a.elements, 2,
                         bytes_of(site.all_tensors()), bytes_of(site.all_outputs()), bytes_of(a.dtype)));
}

}  // namespace tbdsim
