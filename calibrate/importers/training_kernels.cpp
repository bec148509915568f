// Kernels of language-model training. Read are Transformer Engine's matrix products in bf16, a layer's passes
// forward and to the gradient by the input, on an A100 PCIe 80 GB and a B200
// (MooreThreads/SimuMax@4dcaae513ba7, Apache-2.0): y[m x n] = x[m x k] w, whose `layout` is cuBLAS's. Times
// follow from stored efficiencies.
//
// Left out: products that add to their result, since no record states the bytes; norms, grouped products and
// layers; other precisions.
#include <algorithm>
#include <array>
#include <charconv>

#include "calibrate/importers/importers.h"

namespace tbdsim {
namespace {

constexpr std::array kGpus{TableName{"A100-PCIe-80GB", "a100_pcie_80gb"},
                           TableName{"B200-SXM-180GB", "b200"}};

// "4096" of key "m" in "b=1, m=4096, k=5120, layout=TN"; empty where the key is missing.
std::string_view value_of(std::string_view list, std::string_view key) {
  for (std::size_t at = 0; at < list.size();) {
    const std::size_t comma = std::min(list.find(", ", at), list.size());
    const std::string_view entry = list.substr(at, comma - at);
    if (entry.size() > key.size() && entry.starts_with(key) && entry[key.size()] == '=')
      return entry.substr(key.size() + 1);
    at = comma + 2;
  }
  return {};
}

std::int64_t size_of(const TableRow& row, std::string_view key) {
  const std::string_view text = value_of(row.text("shape"), key);
  std::int64_t size = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), size);
  if (failure != std::errc() || end != text.data() + text.size() || size < 1)
    row.fail("shape", "a size '" + std::string(key) + "=' of 1 or more");
  return size;
}

}  // namespace

ImportedRow import_training_kernels(const TableRow& row) {
  const std::string_view shape = row.text("shape");
  if (row.text("op") != "gemm") return left_out("no matrix product: " + row.text("op"));
  if (value_of(shape, "accumulate") != "False") return left_out("adds to its result");
  Record record;
  record.gpu = renamed(row, "gpu", kGpus);
  record.generation = "cublas12";
  record.precision = row.text("dtype");
  record.op = "gemm";
  record.shape = row_major_gemm(size_of(row, "m"), size_of(row, "n"), size_of(row, "k"));
  record.layout = std::string(value_of(shape, "layout"));
  record.cache = "unknown";
  record.algorithm = row.text("backend");
  record.time_s = row.seconds("time_us", kMicrosecond_s);
  record.timer = "host";
  record.source = row.text("source");
  return {.records = {record}, .left_out = ""};
}

}  // namespace tbdsim
