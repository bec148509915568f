// Factorizations of matrices, and what is solved with them, as estimates by their operations and by how many
// of them wait for each other. Nobody timed these kernels here.
//
// A column of a factorization needs the ones before it. Operations are those of LAPACK (Golub and Van Loan,
// Matrix Computations), in which every column changes the part of the matrix that is left: (m - k)(n - k)
// numbers behind column k, on average m n / 2 - n^2 / 6, which for a square matrix is a third of it. For each
// column and number left:
//
//   Cholesky                1 operation, as only half of the matrix is there (n^3 / 3 together)
//   LU                      2 (2 n^3 / 3)
//   QR                      4 (2 m n^2 - 2 n^3 / 3), and as many again for Q
//   tridiagonal form        4 (4 n^3 / 3); half of them are products of the whole matrix with a vector, which no
//                           block saves (Dongarra, Sorensen and Hammarling 1989); eigenvectors take 4 of all numbers
//   triangular solution     2 for each number of the triangle and column of the right side
//
// Blocks of 64 columns change the rest at once; within a block that does not fit on chip each column is a
// kernel of its own where the next one waits for a norm or a pivot of all rows: all but Cholesky's. The
// singular values are those of one-sided Jacobi (cuSOLVER's gesvdj, PyTorch's choice): in each of n - 1
// rounds of a sweep all columns meet another one, a kernel makes their products, 3 operations a number, and
// one turns them, 3 operations, and the right vectors with them. Brent and Luk (1985) found some ten sweeps
// to be enough.
#include <algorithm>

#include "graphs/captured/operators/operators.h"

namespace tbdsim {
namespace {

constexpr std::int64_t kBlock = 64, kSweeps = 10;

bool is_matrix_of_fixed_size(const CapturedTensor& tensor) {
  const std::size_t rank = tensor.shape.size();
  return rank >= 2 && tensor.shape[rank - 1].per_sample == 0 && tensor.shape[rank - 2].per_sample == 0 &&
         tensor.shape[rank - 1].fixed > 0 && tensor.shape[rank - 2].fixed > 0;
}

class Factorization {
 public:
  // `matrix` has a fixed size; there may be many of them.
  Factorization(OperatorSite& site, const CapturedTensor& matrix)
      : site_(site),
        rows_(std::max(matrix.shape.end()[-1].fixed, matrix.shape.end()[-2].fixed)),
        columns_(std::min(matrix.shape.end()[-1].fixed, matrix.shape.end()[-2].fixed)),
        matrices_{matrix.elements.fixed / (rows_ * columns_),
                  matrix.elements.per_sample / (rows_ * columns_)},
        number_(bytes_of(matrix.dtype)) {}

  // Each block of columns changes the part that is left.
  void blocks(std::int64_t flops) {
    kernels(block_count(), left(), flops * std::min(kBlock, columns_), left(), left());
  }

  // Each column changes its block, of half of the rows on average: a kernel a column, or one a block that
  // fits into the 48 KiB of shared memory that every thread block may have.
  void columns(std::int64_t flops) {
    constexpr std::int64_t kSharedMemory = 48 << 10;
    const std::int64_t width = std::min(kBlock, columns_),
                       block = std::max<std::int64_t>(1, rows_ / 2) * width;
    const bool fits = rows_ * width * number_ <= kSharedMemory;
    kernels(fits ? block_count() : columns_, block, fits ? flops * width : flops, block, block);
  }

  // Each column is multiplied by the part that is left.
  void products_with_vectors() { kernels(columns_, left(), 2, left(), rows_); }

  // Each block of columns changes all numbers.
  void whole_blocks(std::int64_t flops) {
    const std::int64_t all = rows_ * columns_;
    kernels(block_count(), all, flops * std::min(kBlock, columns_), all, all);
  }

  // Triangular solutions of as many right sides: the block on the diagonal, then the rest of the triangle.
  void triangular(const Size& right, std::int64_t triangles) {
    const std::int64_t blocks = triangles * block_count(), n = columns_;
    const Size changed{right.fixed / 2, right.per_sample / 2};
    emit(blocks, changed, 2 * std::min(kBlock, n),
         matrices_ * (n * n / 2 / block_count()) * number_ + changed * number_, changed * number_);
  }

  void jacobi() {
    const std::int64_t all = rows_ * columns_, turned = all + columns_ * columns_;
    const std::int64_t rounds = kSweeps * std::max<std::int64_t>(1, columns_ - 1);
    kernels(rounds, all, 3, all, columns_);
    kernels(rounds, turned, 3, turned, turned);
  }

 private:
  [[nodiscard]] std::int64_t block_count() const { return (columns_ + kBlock - 1) / kBlock; }
  [[nodiscard]] std::int64_t left() const {
    return std::max<std::int64_t>(1, rows_ * columns_ / 2 - columns_ * columns_ / 6);
  }

  void kernels(std::int64_t count, std::int64_t numbers, std::int64_t flops, std::int64_t read,
               std::int64_t written) {
    emit(count, matrices_ * numbers, flops, matrices_ * read * number_, matrices_ * written * number_);
  }

  void emit(std::int64_t count, const Size& numbers, std::int64_t flops, const Size& read,
            const Size& written) {
    Kernel kernel = bytes_kernel(KernelKind::reduction, site_.phase, site_.entry.name, numbers, flops, read,
                                 written, number_);
    kernel.repeat = count;
    site_.emit(std::move(kernel));
  }

  OperatorSite& site_;
  std::int64_t rows_, columns_;
  Size matrices_;
  std::int64_t number_;  // bytes
};

// Lowers with the factorization of an argument, or charges the bytes where its size grows with the batch.
template <typename How>
void factorize(OperatorSite& site, std::size_t argument, How how) {
  const CapturedTensor& matrix = site.tensor(argument);
  if (!is_matrix_of_fixed_size(matrix)) return lower_unknown(site, site.entry.name);
  Factorization factorization(site, matrix);
  how(factorization);
}

}  // namespace

void lower_cholesky(OperatorSite& site) {
  factorize(site, 0, [](Factorization& of) { of.blocks(1); });
}

// L y = b, L' x = y: (b, factor, ...)
void lower_cholesky_solve(OperatorSite& site) {
  factorize(site, 1, [&](Factorization& of) { of.triangular(site.output(0).elements, 2); });
}

// The factors solve for the unit matrix: (factor, ...)
void lower_cholesky_inverse(OperatorSite& site) {
  factorize(site, 0, [&](Factorization& of) { of.triangular(site.output(0).elements, 2); });
}

// (triangle, right sides, ...)
void lower_triangular_solve(OperatorSite& site) {
  factorize(site, 0, [&](Factorization& of) { of.triangular(site.output(0).elements, 1); });
}

void lower_lu(OperatorSite& site) {
  factorize(site, 0, [](Factorization& of) {
    of.columns(2);
    of.blocks(2);
  });
}

// LU, and the solution that is the first output: right sides, or the inverse.
void lower_lu_and_solve(OperatorSite& site) {
  lower_lu(site);
  if (is_matrix_of_fixed_size(site.tensor(0)))
    Factorization(site, site.tensor(0)).triangular(site.output(0).elements, 2);
}

// (factors, pivots, right sides, ...)
void lower_lu_solve(OperatorSite& site) {
  factorize(site, 0, [&](Factorization& of) { of.triangular(site.output(0).elements, 2); });
}

// A second pass makes the orthogonal matrix of the reflections where it is asked for.
void lower_qr(OperatorSite& site) {
  factorize(site, 0, [&](Factorization& of) {
    of.columns(4);
    of.blocks(4);
    if (site.entry.name == "linalg_qr") of.blocks(4);
  });
}

// The reflections of QR times a matrix, or times the unit matrix.
void lower_reflections(OperatorSite& site) {
  factorize(site, 0, [](Factorization& of) { of.blocks(4); });
}

// Columns of the tridiagonal form, their products with what is left, changes by blocks, eigenvectors.
void lower_symmetric_eigenvalues(OperatorSite& site) {
  factorize(site, 0, [](Factorization& of) {
    of.columns(2);
    of.products_with_vectors();
    of.blocks(2);
    of.whole_blocks(4);
  });
}

void lower_singular_values(OperatorSite& site) {
  factorize(site, 0, [](Factorization& of) { of.jacobi(); });
}

}  // namespace tbdsim
