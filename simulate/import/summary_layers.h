// Layers of tbd-sim for the rows of a printed summary.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "simulate/import/network.h"
#include "simulate/import/summary_table.h"

namespace tbdsim {

inline constexpr std::int64_t kLargestSummaryKernel = 64;
inline constexpr std::int64_t kLargestSummaryStride = 64;

// A convolution's groups and whether it has a bias, which follow from its number of parameters.
struct SummaryConvolution {
  std::int64_t groups = 1;
  bool bias = true;
};

// "3 x 224 x 224"
[[nodiscard]] std::string sides_text(const std::vector<std::int64_t>& sides);

// A network read from rows of Keras or torchinfo. Members that add a layer return its output.
class SummaryLayers {
 public:
  SummaryLayers(SummaryTable table, const std::string& file);

 protected:
  [[noreturn]] void fail(const SummaryRow& row, const std::string& what) const;
  void require_image(const SummaryRow& row, const NetworkTensor& from) const;

  NetworkTensor conv(const SummaryRow& row, const NetworkTensor& from, const SummaryConvolution& shape,
                     const WindowSide& tall, const WindowSide& wide);
  NetworkTensor dense(const SummaryRow& row, const NetworkTensor& from);
  NetworkTensor batch_norm(const SummaryRow& row, const NetworkTensor& from);
  NetworkTensor relu(const SummaryRow& row, const NetworkTensor& from);
  NetworkTensor dropout(const SummaryRow& row, const NetworkTensor& from);
  NetworkTensor whole_mean(const SummaryRow& row, const NetworkTensor& from);
  NetworkTensor flat(const SummaryRow& row, const NetworkTensor& from);
  NetworkTensor unsupported(const SummaryRow& row, const NetworkTensor& from);

  SummaryTable table_;
  NetworkBuilder builder_;
};

}  // namespace tbdsim
