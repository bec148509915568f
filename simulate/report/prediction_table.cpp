#include "simulate/report/prediction_table.h"

#include <algorithm>
#include <ostream>

#include <fmt/format.h>

#include "hwspecs/base/quantity_text.h"
#include "simulate/prediction/metrics.h"
#include "simulate/prediction/pipe_utilization.h"
#include "simulate/prediction/utilization.h"
#include "simulate/report/cells.h"
#include "simulate/report/kernel_sources.h"
#include "simulate/report/prediction_data.h"
#include "simulate/report/prediction_label.h"
#include "simulate/report/prediction_notes.h"

namespace tbdsim {
namespace {

constexpr std::size_t kNoteWidth = 100;
constexpr std::ptrdiff_t kTensorColumn = 7;  // behind FP32

std::string legend(bool tensor) {
  return fmt::format(
      "+-%: 80 % of measured throughputs are expected so near; time: of an iteration; GPU, FP32,{} CPU: "
      "utilization in %, of the iteration, of the single-precision peak while the GPU is active,{} of {} "
      "cores "
      "(an estimate); par. to total: GPU memory at its peak, in GiB (parameters, their gradients, feature "
      "maps, workspace, dynamic; total with the CUDA context, ! where it does not fit); bound: what limits "
      "most of the time.",
      tensor ? " TC," : "", tensor ? " of tensor cores' peak while kernels run," : "", kHostCores);
}

std::string gib_text(double gib) { return fmt::format("{:.{}f}", gib, gib >= 10 ? 1 : 2); }

Cell utilization_cell(std::optional<double> ratio) { return ratio ? bare_percent_cell(*ratio, 0) : Cell{}; }

double tensor_share(const Prediction& p) { return pipe_use(p).value_or(PipeUse{}).tensor; }

// `tensor`: with a column for tensor cores.
std::vector<Cell> table_row(std::span<const Prediction> predictions, const Prediction& p, bool tensor) {
  const Activity activity = activity_of(p);
  const MemoryPlan& m = p.memory;
  const auto memory = [](Bytes bytes) { return number_cell(bytes.si(), gib_text(in_unit(bytes, "GiB"))); };
  const std::string total = gib_text(in_unit(m.total(), "GiB"));
  std::vector<Cell> row{text_cell(label_among(predictions, p)),
                        text_cell(p.framework->name),
                        text_cell(three_digits(p.throughput()) + " " + throughput_unit(*p.model)),
                        bare_percent_cell(p.interval_factor() - 1, 0),
                        text_cell(to_text(p.iteration_time())),
                        utilization_cell(gpu_utilization(activity)),
                        utilization_cell(fp32_utilization(activity, *p.gpu)),
                        utilization_cell(cpu_utilization(activity)),
                        memory(m.use[MemoryCategory::weights]),
                        memory(m.use[MemoryCategory::weight_gradients]),
                        memory(m.use[MemoryCategory::feature_maps]),
                        memory(m.use[MemoryCategory::workspace]),
                        memory(m.use[MemoryCategory::dynamic]),
                        number_cell(m.total().si(), p.fits ? total : total + "!"),
                        text_cell(name_of(p.bound()))};
  if (tensor) row.insert(row.begin() + kTensorColumn, bare_percent_cell(tensor_share(p), 0));
  return row;
}

std::string batch_title(const Prediction& p) {
  if (p.scenario.tokens > 0) return fmt::format("{} tokens a batch", p.scenario.tokens);
  return fmt::format("batch {}", p.batch_limited ? p.batch_asked : p.scenario.batch);
}

Table wide_table(std::span<const Prediction> predictions) {
  const Prediction& first = predictions[0];
  Table table;
  table.preface = {fmt::format("{}, {}, {}", first.gpu->title, batch_title(first), first.scenario.precision),
                   "kernel times: " + kernel_sources(predictions), ""};
  for (const char* header : {"model", "framework", "throughput", "+-%", "time", "GPU", "FP32", "CPU", "par.",
                             "grad", "maps", "work", "dyn.", "total", "bound"}) {
    const std::string_view name = header;
    const bool right = name != "model" && name != "framework" && name != "bound";
    table.columns.push_back({header, header, right});
  }
  const bool tensor = std::any_of(predictions.begin(), predictions.end(),
                                  [](const Prediction& p) { return tensor_share(p) > 0; });
  if (tensor) table.columns.insert(table.columns.begin() + kTensorColumn, {"TC", "TC", true});
  for (const Prediction& p : predictions) table.rows.push_back(table_row(predictions, p, tensor));
  table.notes = prediction_notes(predictions, kNoteWidth);
  for (const std::string& line : wrapped(legend(tensor), kNoteWidth)) table.notes.push_back(line);
  const auto notes = fit_notes(predictions, kNoteWidth);
  table.notes.insert(table.notes.end(), notes.begin(), notes.end());
  return table;
}

}  // namespace

void write_predictions(std::ostream& out, std::span<const Prediction> predictions, Format format) {
  if (format == Format::json) {
    out << predictions_json(predictions) << '\n';
    return;
  }
  const Table table = format == Format::table ? wide_table(predictions) : prediction_rows(predictions);
  write_tables(out, std::span(&table, 1), format);
}

}  // namespace tbdsim
