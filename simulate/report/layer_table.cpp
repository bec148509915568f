#include "simulate/report/layer_table.h"

#include <fmt/format.h>

#include "hwspecs/base/quantity_text.h"

namespace tbdsim {
namespace {

// The size at a batch of one sample.
double one(const Size& size) { return size.at(1); }

// A count, empty on the screen where it is 0.
Cell sparse_count(double count) {
  Cell cell = count_cell(count);
  if (count == 0) cell.text.clear();
  return cell;
}

}  // namespace

Table layer_table(const ModelFile& model, const Variant& variant, const TrainingStep& step,
                  const Precision& precision) {
  Table table;
  table.name = "layers";
  table.preface = {fmt::format("{}, variant {}: {}", model.title, variant.name, variant.description),
                   fmt::format("source: {}", variant.source), ""};
  table.columns = {{"layer", "layer"},
                   {"type", "type"},
                   {"output", "output"},
                   {"parameters", "parameters", true},
                   {"frozen_parameters", ""},
                   {"statistics", ""},
                   {"forward_macs", "forward MAC", true},
                   {"training_macs", "training MAC", true},
                   {"output_bytes", "output", true}};
  double parameters = 0;
  double frozen = 0;
  double statistics = 0;
  double forward = 0;
  double training = 0;
  for (const LayerSummary& layer : step.layers) {
    const Bytes bytes(one(stored_bytes(layer.output, precision)));
    table.rows.push_back({text_cell(layer.name), text_cell(layer.type), text_cell(to_text(layer.output)),
                          sparse_count(static_cast<double>(layer.trained_parameters)),
                          sparse_count(static_cast<double>(layer.frozen_parameters)),
                          sparse_count(static_cast<double>(layer.statistics)),
                          sparse_count(one(layer.forward_macs)), sparse_count(one(layer.training_macs)),
                          number_cell(bytes.si(), to_text(bytes))});
    parameters += static_cast<double>(layer.trained_parameters);
    frozen += static_cast<double>(layer.frozen_parameters);
    statistics += static_cast<double>(layer.statistics);
    forward += one(layer.forward_macs);
    training += one(layer.training_macs);
  }
  const auto macs = [](double count) {
    return number_cell(count, fmt::format("{} MAC", count_cell(count).text));
  };
  table.totals = {{"parameters", count_cell(parameters)},
                  {"frozen_parameters", count_cell(frozen)},
                  {"statistics", count_cell(statistics)},
                  {"forward_macs", macs(forward)},
                  {"training_macs", macs(training)}};
  table.notes = {fmt::format(
      "For one {}. MAC: a multiply-add, 2 flop; only convolutions and matrix products are counted.",
      model.sample)};
  return table;
}

}  // namespace tbdsim
