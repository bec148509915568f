#include "simulate/analysis/unique_kernels.h"

#include <algorithm>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "hwspecs/base/quantity_text.h"

namespace tbdsim {
namespace {

// Matrix products go by their arithmetic, the others by how their operands are stored.
std::string_view operand_precision(const Kernel& kernel, const Precision& precision) {
  const bool product = kernel.kind == KernelKind::convolution || kernel.kind == KernelKind::gemm ||
                       kernel.kind == KernelKind::recurrent;
  if (product) return name_of(kernel.math);
  const bool wide = kernel.kind == KernelKind::update || precision.storage_bytes == kFp32Bytes;
  return name_of(wide ? MathType::fp32 : precision.math);
}

}  // namespace

std::vector<UniqueKernel> unique_kernels(std::span<const Prediction> predictions) {
  using Key = std::tuple<std::string_view, Phase, std::string_view, std::string, double>;
  std::map<Key, UniqueKernel> distinct;
  for (const Prediction& p : predictions) {
    const Iteration& iteration = p.typical();
    const auto batch = static_cast<double>(iteration.batch);
    const Precision& precision = find_precision(p.scenario.precision);
    for (std::size_t k = 0; k < iteration.step->kernels.size(); ++k) {
      const Kernel& kernel = iteration.step->kernels[k];
      if (!iteration.costs[k].runs()) continue;
      const std::string shape = shape_text(kernel, batch);
      const std::string_view operands = operand_precision(kernel, precision);
      const double bytes = kernel.read_bytes.at(batch) + kernel.written_bytes.at(batch);
      UniqueKernel& entry = distinct[{kernel.op, kernel.phase, operands, shape, bytes}];
      if (entry.count == 0) entry = {kernel, batch, shape, operands, 0, {}, iteration.costs[k].bound};
      const auto repeat = static_cast<double>(kernel.repeat);
      entry.count += repeat;
      entry.total += iteration.costs[k].total * repeat;
    }
  }
  std::vector<UniqueKernel> kernels;
  for (auto& [key, entry] : distinct) kernels.push_back(std::move(entry));
  std::stable_sort(kernels.begin(), kernels.end(),
                   [](const UniqueKernel& a, const UniqueKernel& b) { return a.total > b.total; });
  return kernels;
}

Table unique_kernel_table(std::span<const UniqueKernel> kernels) {
  Table table;
  table.name = "kernels";
  table.columns = {{"kernel", "kernel"},      {"phase", "phase"},       {"precision", "precision"},
                   {"shape", "shape"},        {"count", "count", true}, {"time", "us each", true},
                   {"total", "ms all", true}, {"share", "%", true},     {"bound", "bound"}};
  Seconds all;
  for (const UniqueKernel& k : kernels) all += k.total;
  for (const UniqueKernel& k : kernels) {
    const double share = k.total / all;
    table.rows.push_back({text_cell(k.kernel.op), text_cell(name_of(k.kernel.phase)), text_cell(k.precision),
                          text_cell(k.shape), count_cell(k.count),
                          number_cell(k.each().si(), fmt::format("{:.1f}", in_unit(k.each(), "us"))),
                          number_cell(k.total.si(), fmt::format("{:.2f}", in_unit(k.total, "ms"))),
                          number_cell(share, fmt::format("{:.2f}", 100 * share)),
                          text_cell(name_of(k.bound))});
  }
  table.totals = {{"distinct", count_cell(static_cast<double>(kernels.size()))},
                  {"time", number_cell(all.si(), to_text(all))}};
  return table;
}

}  // namespace tbdsim
