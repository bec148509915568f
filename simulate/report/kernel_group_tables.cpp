#include "simulate/report/kernel_group_tables.h"

#include <optional>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "hwspecs/base/quantity_text.h"
#include "simulate/report/cells.h"
#include "simulate/report/kernel_table.h"

namespace tbdsim {
namespace {

// Seconds; on the screen a number of `unit` with so many decimals.
Cell time_cell(Seconds time, std::string_view unit, int decimals) {
  return number_cell(time.si(), fmt::format("{:.{}f}", in_unit(time, unit), decimals));
}

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
  const std::vector<Cell> scenario = {text_cell(p.model->name), text_cell(p.framework->name),
                                      text_cell(p.gpu->name), text_cell(p.scenario.precision),
                                      count_cell(static_cast<double>(p.typical().batch))};
  for (const KernelGroup& group : groups) {
    std::vector<Cell>& row = table.rows.emplace_back(scenario);
    row.push_back(text_cell(group.name));
    row.push_back(count_cell(group.count));
    row.push_back(time_cell(group.time, "ms", 3));
    row.push_back(bare_percent_cell(group.share, 2));
    row.push_back(utilization_cell(group.fp32_utilization));
    row.push_back(text_cell(name_of(group.bound())));
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
    std::vector<Cell>& row = table.rows.emplace_back();
    row.push_back(text_cell(k.kernel.op));
    row.push_back(text_cell(name_of(k.kernel.phase)));
    row.push_back(text_cell(k.precision));
    row.push_back(text_cell(k.shape));
    row.push_back(count_cell(k.count));
    row.push_back(number_cell(k.each().si(), three_digits(in_unit(k.each(), "us"))));
    row.push_back(number_cell(k.total.si(), three_digits(in_unit(k.total, "ms"))));
    row.push_back(bare_percent_cell(k.total / all, 2));
    row.push_back(text_cell(name_of(k.bound)));
  }
  table.totals = {{"distinct", count_cell(static_cast<double>(kernels.size()))},
                  {"time", number_cell(all.si(), to_text(all))}};
  return table;
}

}  // namespace tbdsim
