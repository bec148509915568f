#include "simulate/report/measured_tables.h"

#include <cmath>

#include <fmt/format.h>

#include "hwspecs/base/quantity_text.h"
#include "simulate/report/kernel_table.h"

namespace tbdsim {
namespace {

Cell milliseconds(Seconds time) { return number_cell(time.si(), fmt::format("{:.3f}", in_unit(time, "ms"))); }
Cell text_of(Seconds time) { return number_cell(time.si(), to_text(time)); }
Cell count_of(double count) { return number_cell(count, fmt::format("{:.4g}", count)); }
Cell part_cell(StepPart part) { return text_cell(kStepPartNames[static_cast<std::size_t>(part)]); }

// Predicted over measured less one; none where either is nothing.
Cell error_cell(double predicted, double measured) {
  return predicted > 0 && measured > 0 ? signed_bare_percent_cell(predicted / measured - 1) : none_cell();
}

void add_both(Table& table, const std::string& what, const std::optional<Seconds>& predicted,
              const std::optional<Seconds>& measured) {
  if (predicted) table.totals.emplace_back("predicted_" + what, text_of(*predicted));
  if (measured) table.totals.emplace_back("measured_" + what, text_of(*measured));
}

}  // namespace

Table measured_kernel_table(const MeasuredRun& run) {
  constexpr std::size_t kLongest = 60;  // characters of a name on the screen
  Table table;
  table.name = "kernels";
  table.preface = {fmt::format("{}: {}{}", run.file, run.tool, run.gpu.empty() ? "" : ", " + run.gpu), ""};
  table.columns = {
      {"part", "part"},     {"kind", "kind"},    {"count", "x a step", true}, {"time", "ms a step", true},
      {"share", "%", true}, {"kernel", "kernel"}};
  for (const MeasuredKernel& kernel : run.kernels) {
    Cell name = text_cell(kernel.name);
    if (name.text.size() > kLongest) name.text = name.text.substr(0, kLongest - 3) + "...";
    table.rows.push_back({part_cell(kernel.part), text_cell(kernel.kind), count_of(kernel.count / run.steps),
                          milliseconds(kernel.time * (1 / run.steps)),
                          bare_percent_cell(run.kernel_time > Seconds(0) ? kernel.time / run.kernel_time : 0),
                          name});
  }
  table.totals = {{"steps", count_cell(run.steps)},
                  {"kernel_time", text_of(run.kernel_time * (1 / run.steps))}};
  if (run.span) table.totals.emplace_back("step_time", text_of(*run.span * (1 / run.steps)));
  if (run.memory_peak)
    table.totals.emplace_back("memory_peak", number_cell(run.memory_peak->si(), to_text(*run.memory_peak)));
  table.notes = run.notes;
  return table;
}

Table comparison_table(const Prediction& p, const MeasuredRun& run, const Comparison& comparison,
                       const std::vector<ScaledOn>& elsewhere) {
  Table table;
  table.name = "kinds";
  table.preface = kernel_preface(p);
  table.preface.push_back(fmt::format("measured: {}, {}{}, {:g} step{}", run.file, run.tool,
                                      run.gpu.empty() ? "" : ", " + run.gpu, run.steps,
                                      run.steps == 1 ? "" : "s"));
  table.preface.emplace_back();
  table.columns = {{"part", comparison.parts ? "part" : ""}, {"kind", "kind"},
                   {"predicted_count", "x pred.", true},     {"measured_count", "x meas.", true},
                   {"predicted_time", "ms pred.", true},     {"measured_time", "ms meas.", true},
                   {"difference", "ms off", true},           {"error", "% off", true}};
  for (const ScaledOn& other : elsewhere)
    table.columns.push_back({"time_elsewhere", "ms on " + other.gpu, true});
  for (const ComparedKernels& row : comparison.rows) {
    const Seconds off = row.predicted - row.measured;
    table.rows.push_back({part_cell(row.part), text_cell(row.kind), count_of(row.predicted_count),
                          count_of(row.measured_count), milliseconds(row.predicted),
                          milliseconds(row.measured),
                          number_cell(off.si(), fmt::format("{:+.3f}", in_unit(off, "ms"))),
                          error_cell(row.predicted.si(), row.measured.si())});
    if (!elsewhere.empty())
      table.rows.back().push_back(row.elsewhere ? milliseconds(*row.elsewhere) : none_cell());
  }
  const ComparedTotals &predicted = comparison.predicted, &measured = comparison.measured;
  table.totals = {{"predicted_kernels", count_of(predicted.kernels)},
                  {"measured_kernels", count_of(measured.kernels)}};
  add_both(table, "kernel_time", predicted.kernel_time, measured.kernel_time);
  add_both(table, "step_time", predicted.step, measured.step);
  add_both(table, "idle_time", predicted.idle, measured.idle);
  for (const auto& [name, bytes] :
       {std::pair("predicted_memory", predicted.memory), {"measured_memory", measured.memory}})
    if (bytes) table.totals.emplace_back(name, number_cell(bytes->si(), to_text(*bytes)));
  for (const ScaledOn& other : elsewhere) {
    table.totals.emplace_back("gpu_elsewhere", text_cell(other.gpu));
    table.totals.emplace_back("kernel_time_elsewhere", text_of(other.step.kernel_time));
    if (!other.step.step) continue;
    table.totals.emplace_back("step_time_elsewhere", text_of(*other.step.step));
    table.totals.emplace_back("step_time_elsewhere_low", text_of(*other.step.step * (1 / other.step.factor)));
    table.totals.emplace_back("step_time_elsewhere_high", text_of(*other.step.step * other.step.factor));
  }
  table.notes = run.notes;
  if (comparison.updates_merged)
    table.notes.push_back(
        "The profile does not tell updates from other element-wise kernels: both are one kind here.");
  if (!elsewhere.empty())
    table.notes.push_back(
        "On another GPU: each kind's measured time times what the model says of it on both; time "
        "without a kernel stays as it was measured.");
  return table;
}

}  // namespace tbdsim
