#include "simulate/report/kernel_table.h"

#include <algorithm>
#include <array>
#include <numeric>

#include <fmt/format.h>

#include "hwspecs/base/quantity_text.h"
#include "simulate/prediction/metrics.h"
#include "simulate/report/cells.h"
#include "simulate/report/kernel_sources.h"

namespace tbdsim {
namespace {

// Share of the iteration, 0 to 1, in which the GPU neither executes nor copies.
double idle_share(const ProvenanceShares& shares) {
  return std::max(0.0, 1 - std::accumulate(shares.begin(), shares.end(), 0.0));
}

bool one_provenance(const ProvenanceShares& shares) {
  return std::count_if(shares.begin(), shares.end(), [](double share) { return share > 0; }) == 1;
}

// "measured 61.3 %, modelled 28.7 %, GPU idle 10.0 %".
std::string shares_text(const ProvenanceShares& shares) {
  std::string text;
  for (std::size_t i = 0; i < shares.size(); ++i) {
    if (shares[i] == 0) continue;
    text += fmt::format("{} {:.1f} %, ", kProvenanceNames[i], kPercent * shares[i]);
  }
  return text + fmt::format("GPU idle {:.1f} %", kPercent * idle_share(shares));
}

// The provenance, abbreviated on the screen; the line above the table spells it out.
Cell provenance_cell(Provenance provenance) {
  constexpr std::array<std::string_view, kProvenanceNames.size()> kShort = {"meas", "interp", "transf",
                                                                            "model", "roof"};
  return {std::string(kShort[static_cast<std::size_t>(provenance)]), std::string(name_of(provenance))};
}

// "this" or "others", the GPU that was measured, as in a profile; empty for the roofline.
Cell measured_on_cell(const KernelSource& source) {
  return text_cell(source.library.empty() ? "" : source.on_this_gpu ? "this" : "others");
}

// The pass: forward, gradients by data (dgrad) or by weights (wgrad), update.
Cell phase_cell(const Kernel& kernel) {
  constexpr std::array<std::string_view, kPhaseNames.size()> kShort = {"forward", "data", "weights",
                                                                       "update"};
  const std::string_view brief = kShort[static_cast<std::size_t>(kernel.phase)];
  return {std::string(kernel.second_order ? "double" : brief), std::string(phase_name(kernel))};
}

// The scenario of a row, in columns that only CSV and JSON show.
std::vector<Cell> scenario_cells(const Prediction& p) {
  return {text_cell(p.model->name),        text_cell(p.scenario.variant),
          text_cell(p.framework->name),    text_cell(p.gpu->name),
          text_cell(p.scenario.precision), count_cell(static_cast<double>(p.typical().batch)),
          text_cell(p.profile->name),      flag_cell(p.profile->calibrated)};
}

// "batch 64" or "batch 64 of length 30, where most time goes".
std::string batch_text(const Prediction& p, const Iteration& iteration) {
  std::string text = fmt::format("batch {}", iteration.batch);
  if (iteration.bucket.length > 0) text += fmt::format(" of length {}", iteration.bucket.length);
  if (p.iterations.size() > 1)
    text += fmt::format(", where most time goes of {} lengths", p.iterations.size());
  return text;
}

// The number of launches; empty on the screen where it is 1.
Cell times_cell(double repeat) {
  Cell cell = count_cell(repeat);
  if (repeat == 1) cell.text.clear();
  return cell;
}

Cell time_cell(Seconds time) { return number_cell(time.si(), three_digits(in_unit(time, "us"))); }

// Columns of scenario_cells() and kernel_cells(). The provenance is hidden on the screen where all kernels
// have the same.
std::vector<Column> kernel_columns(bool one_provenance) {
  const char* const from = one_provenance ? "" : "from";
  return {{"model", ""},        {"variant", ""},       {"framework", ""},        {"gpu", ""},
          {"precision", ""},    {"batch", ""},         {"profile", ""},          {"calibrated", ""},
          {"layer", "layer"},   {"phase", "phase"},    {"kernel", "kernel"},     {"kind", ""},
          {"shape", "shape"},   {"repeat", "x", true}, {"flops", "Mflop", true}, {"bytes", ""},
          {"compute_time", ""}, {"memory_time", ""},   {"algorithm", ""},        {"workspace", ""},
          {"time", "us", true}, {"time_low", ""},      {"time_high", ""},        {"interval", "+-%", true},
          {"share", "%", true}, {"bound", "bound"},    {"provenance", from},     {"library", ""},
          {"measured_on", ""}};
}

std::vector<Cell> kernel_cells(const Prediction& p, const Iteration& iteration, std::size_t k) {
  const Kernel& kernel = iteration.step->kernels[k];
  const KernelCost& cost = iteration.costs[k];
  const KernelSource source = source_of(p, iteration, k);
  const auto batch = static_cast<double>(iteration.batch);
  const auto repeat = static_cast<double>(kernel.repeat);
  const Flops flops(kernel.flops.at(batch));
  const Bytes bytes(kernel.read_bytes.at(batch) + kernel.written_bytes.at(batch));
  const double share = cost.total * repeat / iteration.time();
  const std::string layer =
      kernel.layer < 0 ? "(all)" : iteration.step->layers[static_cast<std::size_t>(kernel.layer)].name;
  return {text_cell(layer),
          phase_cell(kernel),
          text_cell(kernel.op),
          text_cell(name_of(kernel.kind)),
          text_cell(shape_text(kernel, batch)),
          times_cell(repeat),
          number_cell(flops.si(), three_digits(in_unit(flops, "Mflop"))),
          number_cell(bytes.si(), three_digits(in_unit(bytes, "MB"))),
          time_cell(cost.compute),
          time_cell(cost.memory),
          text_cell(name_of(cost.algorithm)),
          number_cell(cost.workspace.si(), to_text(cost.workspace)),
          time_cell(cost.total),
          time_cell(cost.total * (1 / cost.factor())),
          time_cell(cost.total * cost.factor()),
          bare_percent_cell(cost.factor() - 1, 0),
          bare_percent_cell(share, 2),
          text_cell(name_of(cost.bound)),
          provenance_cell(cost.provenance),
          text_cell(source.library),
          measured_on_cell(source)};
}

}  // namespace

ProvenanceShares provenance_shares(const Iteration& iteration) {
  ProvenanceShares shares{};
  for (std::size_t k = 0; k < iteration.costs.size(); ++k) {
    const KernelCost& cost = iteration.costs[k];
    shares[static_cast<std::size_t>(cost.provenance)] +=
        busy_time(k, *iteration.step, iteration.costs, iteration.timeline) / iteration.time();
  }
  return shares;
}

std::vector<std::string> kernel_preface(const Prediction& p) {
  const Iteration& iteration = p.typical();
  std::vector<std::string> preface =
      wrapped(fmt::format("{} ({}) on {}, {}, {}, {}; kernel times: {}", p.model->name, p.scenario.variant,
                          p.framework->title, p.gpu->title, batch_text(p, iteration), p.scenario.precision,
                          kernel_sources(std::span(&p, 1))),
              kScreenWidth);
  for (std::string& line :
       wrapped("where the time comes from: " + shares_text(provenance_shares(iteration)), kScreenWidth)) {
    preface.push_back(std::move(line));
  }
  return preface;
}

void shorten_layers(Table& table) {
  constexpr std::size_t kWidest = 13;
  constexpr std::size_t kEnd = 7;
  const auto column =
      static_cast<std::size_t>(std::find_if(table.columns.begin(), table.columns.end(),
                                            [](const Column& c) { return c.key == "layer"; }) -
                               table.columns.begin());
  if (column == table.columns.size()) return;
  for (std::vector<Cell>& row : table.rows) {
    std::string& name = row[column].text;
    if (name.size() > kWidest)
      name = name.substr(0, kWidest - kEnd - 2) + ".." + name.substr(name.size() - kEnd);
  }
}

Table kernel_table(const Prediction& p, const std::set<Provenance>& from) {
  const Iteration& iteration = p.typical();
  const auto batch = static_cast<double>(iteration.batch);
  Table table;
  table.name = "kernels";
  table.preface = kernel_preface(p);
  table.preface.emplace_back();
  table.columns = kernel_columns(one_provenance(provenance_shares(iteration)));
  Flops flops;
  for (std::size_t k = 0; k < iteration.step->kernels.size(); ++k) {
    const Kernel& kernel = iteration.step->kernels[k];
    const KernelCost& cost = iteration.costs[k];
    if (!cost.runs()) continue;
    const Flops each(kernel.flops.at(batch));
    flops += each * static_cast<double>(kernel.repeat);
    if (!from.empty() && !from.contains(cost.provenance)) continue;
    std::vector<Cell>& row = table.rows.emplace_back(scenario_cells(p));
    for (Cell& cell : kernel_cells(p, iteration, k)) row.push_back(std::move(cell));
  }
  table.notes = {"+-%: 80 % of measured times are expected so near."};
  const Seconds time = iteration.time();
  const Seconds busy = iteration.timeline.gpu_busy;
  const double rate = iteration.units / time.si();
  table.totals = {{"model", text_cell(p.model->name)},
                  {"framework", text_cell(p.framework->name)},
                  {"batch", count_cell(batch)},
                  {"precision", text_cell(p.scenario.precision)},
                  {"iteration_time", number_cell(time.si(), to_text(time))},
                  {"gpu_busy", number_cell(busy.si(), to_text(busy))},
                  {"throughput", number_cell(rate, three_digits(rate) + " " + throughput_unit(*p.model))},
                  {"flops", number_cell(flops.si(), to_text(flops))}};
  return table;
}

}  // namespace tbdsim
