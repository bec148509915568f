#include "graphs/kernel.h"

#include <fmt/format.h>

namespace tbdsim {

std::string shape_text(const Kernel& kernel, double batch) {
  if (const auto* conv = std::get_if<ConvShape>(&kernel.shape)) {
    std::string stride;
    if (conv->stride_height != 1 || conv->stride_width != 1) stride = fmt::format("/{}", conv->stride_height);
    if (conv->stride_width != conv->stride_height) stride += fmt::format("x{}", conv->stride_width);
    return fmt::format("{:.0f}x{}x{}x{} {}x{}x{}{}", conv->images.at(batch), conv->channels, conv->height,
                       conv->width, conv->filters, conv->kernel_height, conv->kernel_width, stride);
  }
  if (const auto* gemm = std::get_if<GemmShape>(&kernel.shape)) {
    return fmt::format("m{:.0f} n{:.0f} k{:.0f} {}{}", gemm->m.at(batch), gemm->n.at(batch), gemm->k.at(batch),
                       gemm->transpose_a ? 'T' : 'N', gemm->transpose_b ? 'T' : 'N');
  }
  return "";
}

}  // namespace tbdsim
