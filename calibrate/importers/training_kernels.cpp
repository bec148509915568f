// Kernels of language-model training: Transformer Engine's matrix products in bf16 on an A100 PCIe 80 GB and
// a B200 (MooreThreads/SimuMax@4dcaae513ba7, Apache-2.0), three passes of a layer, alone and grouped by
// experts. Times follow from stored efficiencies.
//
//   pass                  y[m x n], row by row         layout
//   forward               x[m x k] w[n x k]'           TN
//   gradient by x         dy[m x k] w[k x n]           NN
//   gradient by w         dy[k x m]' x[k x n]          NT, added to a sum over micro-batches in bf16 or fp32
//
// Left out: norms, whole layers; other precisions.
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

std::int64_t bytes_of(std::string_view type) { return type == "fp32" ? 4 : 2; }

// An experts' product: M tokens of each, y[M x N] = x[M x K] w[N x K]' forward.
void read_grouped(const TableRow& row, Record& record) {
  const std::string_view list = row.text("shape");
  const std::string_view stage = value_of(list, "stage");
  const std::int64_t tokens = size_of(row, "M"), outputs = size_of(row, "N"), inputs = size_of(row, "K");
  record.op = "grouped_gemm";
  record.shape = stage == "fwd"            ? row_major_gemm(tokens, outputs, inputs)
                 : stage == "bwd_grad_act" ? row_major_gemm(tokens, inputs, outputs)
                                           : row_major_gemm(outputs, inputs, tokens);
  record.shape.batch = size_of(row, "ng");
  record.layout = stage == "fwd" ? "TN" : stage == "bwd_grad_act" ? "NN" : "NT";
  record.shape.output_bytes = stage == "bwd_grad_w" ? bytes_of(value_of(list, "main_grad_dtype")) : 2;
}

void read_product(const TableRow& row, Record& record) {
  record.op = "gemm";
  record.shape = row_major_gemm(size_of(row, "m"), size_of(row, "n"), size_of(row, "k"));
  record.layout = std::string(value_of(row.text("shape"), "layout"));
  record.shape.output_bytes = bytes_of(value_of(row.text("shape"), "out_dtype"));
}

}  // namespace

ImportedRow import_training_kernels(const TableRow& row) {
  const std::string& op = row.text("op");
  if (op != "gemm" && op != "grouped_gemm") return left_out("no matrix product: " + op);
  Record record;
  record.gpu = renamed(row, "gpu", kGpus);
  record.generation = "cublas12";
  record.precision = row.text("dtype");
  if (op == "gemm") {
    read_product(row, record);
  } else {
    read_grouped(row, record);
  }
  if (value_of(row.text("shape"), "accumulate") == "True") record.layout += '+';
  record.cache = "unknown";
  record.algorithm = row.text("backend");
  record.time_s = row.seconds("time_us", kMicrosecond_s);
  record.timer = "host";
  record.source = file_before_revision(row.text("source"));
  return {.records = {record}, .left_out = ""};
}

}  // namespace tbdsim
