// Fourier transforms as PyTorch has cuFFT make them (aten/src/ATen/native/cuda/SpectralOps.cu).
//
//   aten._fft_r2c  (x, dims, normalization, onesided)   the last of dims first, then the others
//   aten._fft_c2r  (x, dims, normalization, last size)  the last of dims last
//   aten._fft_c2c  (x, dims, normalization, forward)    up to three dims in one call
//
// Each dimension is a pass over all numbers, which are read and written. Estimate: a transform of more
// numbers than fit into the 48 KiB of shared memory that every thread block may have is p passes, of the p-th
// root of as many each. PyTorch copies the numbers before a call whose other dimensions are not one in memory
// (_exec_fft), and multiplies by the normalization in a kernel of its own.
#include <algorithm>
#include <cmath>

#include "graphs/captured/operators/operators.h"

namespace tbdsim {
namespace {

class Transform {
 public:
  explicit Transform(OperatorSite& site) : site_(site), x_(site.tensor(0)), y_(site.output(0)) {
    const auto rank = static_cast<std::int64_t>(x_.shape.size());
    for (const std::int64_t dim : site.wholes(1)) {
      const std::int64_t at = dim < 0 ? dim + rank : dim;
      if (at < 0 || at >= rank) site.fail(1, "dimensions of the input");
      dims_.push_back(static_cast<std::size_t>(at));
    }
  }

  void real_to_complex() {
    if (dims_.empty()) return;
    const bool onesided = site_.flag(3);
    const Size half = onesided ? bytes_of(y_) : halved(bytes_of(y_));
    const Size numbers = onesided ? y_.elements : halved(y_.elements);
    passes(x_.shape[dims_.back()], numbers, bytes_of(x_), half);
    complex({dims_.begin(), dims_.end() - 1}, numbers, half);
    normalize(numbers, half);
    if (!onesided) kernel("conjugate", numbers, 1, half, half);
  }

  void complex_to_real() {
    if (dims_.empty()) return;
    const Size bytes = bytes_of(x_);
    const bool one = dims_.size() == 1;  // cuFFT may write into its input, of which it gets a copy
    if (one) kernel("copy", x_.elements, 0, bytes, bytes);
    complex({dims_.begin(), dims_.end() - 1}, x_.elements, bytes);
    passes(y_.shape[dims_.back()], x_.elements, bytes, bytes_of(y_), bytes);
    normalize(y_.elements, bytes_of(y_));
  }

  void complex_to_complex() {
    complex(dims_, y_.elements, bytes_of(y_));
    normalize(y_.elements, bytes_of(y_));
  }

 private:
  static Size halved(const Size& size) { return {size.fixed / 2, size.per_sample / 2}; }

  void kernel(std::string_view op, const Size& numbers, std::int64_t flops, const Size& read,
              const Size& written, const Size& scratch = {}) {
    Kernel kernel = bytes_kernel(KernelKind::elementwise, site_.phase, op, numbers, flops, read, written,
                                 bytes_of(y_.dtype));
    kernel.scratch_bytes = scratch;
    site_.emit(std::move(kernel));
  }

  // The passes of one dimension of as many numbers: 5 n log2(n) operations for n of them, as FFTs are
  // counted.
  void passes(const Size& length, const Size& numbers, const Size& read, const Size& written,
              const Size& scratch = {}) {
    constexpr double kSharedMemory = 48 << 10, kOperations = 5;
    const double n = std::max(1.0, length.at(2)), complex_bytes = complex_number_bytes();
    std::int64_t count = 1;
    while (std::pow(n, 1.0 / static_cast<double>(count)) * complex_bytes > kSharedMemory) ++count;
    const double flops = kOperations * std::log2(n) / static_cast<double>(count);
    for (std::int64_t i = 0; i < count; ++i)
      kernel(site_.entry.name, numbers, std::llround(flops), i == 0 ? read : written, written, scratch);
  }

  // Transforms of complex numbers over these dimensions, three in a call.
  void complex(const std::vector<std::size_t>& dims, const Size& numbers, const Size& bytes) {
    constexpr std::size_t kDimsOfCall = 3;
    for (std::size_t end = dims.size(); end > 0;) {
      const std::size_t begin = end > kDimsOfCall ? end - kDimsOfCall : 0;
      const std::vector<std::size_t> call(dims.begin() + static_cast<std::ptrdiff_t>(begin),
                                          dims.begin() + static_cast<std::ptrdiff_t>(end));
      if (!others_are_one(call)) kernel("copy", numbers, 0, bytes, bytes);
      for (const std::size_t dim : call) passes(x_.shape[dim], numbers, bytes, bytes, bytes);
      end = begin;
    }
  }

  // True where no dimension of the call lies between two others that have more than one element.
  [[nodiscard]] bool others_are_one(const std::vector<std::size_t>& call) const {
    int runs = 0;
    bool in_run = false;
    for (std::size_t dim = 0; dim < x_.shape.size(); ++dim) {
      if (std::ranges::find(call, dim) != call.end()) {
        in_run = false;
      } else if (!in_run && x_.shape[dim] != fixed_size(1)) {
        in_run = true;
        ++runs;
      }
    }
    return runs <= 1;
  }

  // 0: none, 1: by the root of the transform's size, 2: by the size.
  void normalize(const Size& numbers, const Size& bytes) {
    if (site_.whole(2) != 0) kernel("scale", numbers, 1, bytes, bytes);
  }

  [[nodiscard]] double complex_number_bytes() const {
    constexpr double kSingle = 8, kDouble = 16;
    return x_.dtype == Dtype::f64 || x_.dtype == Dtype::c128 ? kDouble : kSingle;
  }

  OperatorSite& site_;
  const CapturedTensor& x_;
  const CapturedTensor& y_;
  std::vector<std::size_t> dims_;
};

}  // namespace

void lower_real_to_complex(OperatorSite& site) { Transform(site).real_to_complex(); }
void lower_complex_to_real(OperatorSite& site) { Transform(site).complex_to_real(); }
void lower_complex_to_complex(OperatorSite& site) { Transform(site).complex_to_complex(); }

}  // namespace tbdsim
