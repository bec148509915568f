#include "graphs/kernel.h"

#include <fmt/format.h>

namespace tbdsim {
namespace {

std::string stride_text(std::int64_t height, std::int64_t width) {
  if (height == 1 && width == 1) return "";
  return height == width ? fmt::format("/{}", height) : fmt::format("/{}x{}", height, width);
}

// The padding, unless it centres the window.
std::string pad_text(std::int64_t pad_height, std::int64_t pad_width, std::int64_t height,
                     std::int64_t width) {
  if (pad_height == (height - 1) / 2 && pad_width == (width - 1) / 2) return "";
  return pad_height == pad_width ? fmt::format(" p{}", pad_height)
                                 : fmt::format(" p{}x{}", pad_height, pad_width);
}

// Rows or columns that a filter spans.
std::int64_t span_of(std::int64_t taps, std::int64_t dilation) { return dilation * (taps - 1) + 1; }

std::string dilation_text(std::int64_t height, std::int64_t width) {
  if (height == 1 && width == 1) return "";
  return height == width ? fmt::format(" d{}", height) : fmt::format(" d{}x{}", height, width);
}

struct ShapeText {
  double batch;

  std::string operator()(const VectorShape& v) const { return fmt::format("{:.0f}", v.elements.at(batch)); }
  std::string operator()(const MatrixShape& m) const {
    return fmt::format("{:.0f}x{}", m.rows.at(batch), m.columns);
  }
  std::string operator()(const ImageShape& i) const {
    return fmt::format("{:.0f}x{}x{}x{}", i.images.at(batch), i.channels, i.height, i.width);
  }
  std::string operator()(const PoolShape& p) const {
    return fmt::format("{} {}x{}{}{}", (*this)(p.input), p.kernel_height, p.kernel_width,
                       stride_text(p.stride_height, p.stride_width),
                       pad_text(p.pad_height, p.pad_width, p.kernel_height, p.kernel_width));
  }
  std::string operator()(const ConvShape& c) const {
    const std::int64_t rows = span_of(c.kernel_height, c.dilation_height);
    const std::int64_t columns = span_of(c.kernel_width, c.dilation_width);
    return fmt::format("{:.0f}x{}x{}x{} {}x{}x{}{}{}{}{}{}", c.images.at(batch), c.channels, c.height,
                       c.width, c.filters, c.kernel_height, c.kernel_width,
                       stride_text(c.stride_height, c.stride_width),
                       pad_text(c.pad_height, c.pad_width, rows, columns),
                       dilation_text(c.dilation_height, c.dilation_width),
                       c.groups == 1 ? "" : fmt::format(" g{}", c.groups), c.transposed ? " t" : "");
  }
  std::string operator()(const GemmShape& g) const {
    const double times = g.batch.at(batch);
    const std::string batched = times == 1 ? "" : fmt::format("{:.0f}x ", times);
    const std::string grouped = g.grouped ? "grouped " : "";
    return fmt::format("{}{}m{:.0f} n{:.0f} k{:.0f} {}{}", grouped, batched, g.m.at(batch), g.n.at(batch),
                       g.k.at(batch), g.transpose_a ? 'T' : 'N', g.transpose_b ? 'T' : 'N');
  }
  std::string operator()(const AttentionShape& a) const {
    const std::string values = a.values == a.features ? "" : fmt::format("+{}", a.values);
    return fmt::format("{:.0f}x{:.0f}x{:.0f} {}{}{}{}{}{}", a.heads.at(batch), a.queries.at(batch),
                       a.keys.at(batch), a.features, values, a.causal ? " causal" : "",
                       a.window == 0 ? "" : fmt::format(" window {}", a.window),
                       a.queries_per_key == 1 ? "" : fmt::format(" g{}", a.queries_per_key),
                       a.drops ? " dropout" : "");
  }
  std::string operator()(const RecurrentShape& r) const {
    return fmt::format("{:.0f}x{}x{} {}x{}", r.batch.at(batch), r.steps, r.inputs, r.gates, r.hidden);
  }
};

}  // namespace

std::string shape_text(const Kernel& kernel, double batch) {
  return std::visit(ShapeText{batch}, kernel.shape);
}

}  // namespace tbdsim
