#include "simulate/report/kernel_group_tables.h"

#include <optional>

#include <fmt/format.h>

#include "hwspecs/base/quantity_text.h"
#include "simulate/report/cells.h"
#include "simulate/report/kernel_table.h"

namespace tbdsim {
namespace {

Cell utilization_cell(std::optional<double> ratio) { return ratio ? bare_percent_cell(*ratio) : Cell{}; }

}  // namespace

Table kernel_group_table(const Prediction& p, KernelView view, const std::vector<KernelGroup>& groups) {
  Table table;
  table.name = "kernels";
  table.preface = kernel_preface(p);
  table.preface.emplace_back();
  const std::string by(kKernelViewNames[static_cast<std::size_t>(view)]);
  table.columns = {{"model", ""},        {"framework", ""},
                   {"gpu", ""},          {"precision", ""},
                   {"batch", ""},        {by, by},
                   {"count", "x", true}, {"time", "ms", true},
                   {"share", "%", true}, {"fp32_utilization", "FP32 %", true},
                   {"bound", "bound"}};
  for (const KernelGroup& group : groups) {
    table.rows.push_back({text_cell(p.model->name), text_cell(p.framework->name), text_cell(p.gpu->name),
                          text_cell(p.scenario.precision), count_cell(static_cast<double>(p.typical().batch)),
                          text_cell(group.name), count_cell(group.count),
                          number_cell(group.time.si(), fmt::format("{:.3f}", in_unit(group.time, "ms"))),
                          bare_percent_cell(group.share, 2), utilization_cell(group.fp32_utilization),
                          text_cell(name_of(group.bound()))});
  }
  const Seconds time = p.typical().time();
  table.totals = {{"model", text_cell(p.model->name)},
                  {"framework", text_cell(p.framework->name)},
                  {"iteration_time", number_cell(time.si(), to_text(time))},
                  {"fp32_utilization", utilization_cell(average_fp32_utilization(p))}};
  if (view == KernelView::kernel)
    table.notes = {"Names as profilers show them; in parentheses the simulator's own, where none is known."};
  return table;
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
                          number_cell(k.each().si(), three_digits(in_unit(k.each(), "us"))),
                          number_cell(k.total.si(), three_digits(in_unit(k.total, "ms"))),
                          bare_percent_cell(share, 2), text_cell(name_of(k.bound))});
  }
  table.totals = {{"distinct", count_cell(static_cast<double>(kernels.size()))},
                  {"time", number_cell(all.si(), to_text(all))}};
  return table;
}

}  // namespace tbdsim
