#include "simulate/report/scaling_table.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "hwspecs/base/quantity_text.h"
#include "hwspecs/base/suggest.h"
#include "simulate/prediction/metrics.h"
#include "simulate/prediction/utilization.h"
#include "simulate/report/cells.h"

namespace tbdsim {
namespace {

constexpr std::size_t kNoteWidth = 100;

const std::vector<Column> kColumns = {{"model", "model"},
                                      {"framework", "framework"},
                                      {"batch", "batch", true},
                                      {"machines", "mach.", true},
                                      {"gpus", "GPUs", true},
                                      {"network", "network"},
                                      {"network_assumed", ""},
                                      {"method", ""},
                                      {"throughput", "throughput", true},
                                      {"speed_up", "speed-up", true},
                                      {"efficiency", "eff.", true},
                                      {"iteration_time", "time", true},
                                      {"exposed_share", "wait", true},
                                      {"exchange_share", "exch.", true},
                                      {"gpu_utilization", "GPU", true},
                                      {"fp32_utilization", "FP32", true},
                                      {"memory", "GiB", true},
                                      {"load", "load", true},
                                      {"busiest_link", "busiest link"}};

constexpr const char* kLegend =
    "batch: of each GPU; GPUs: in each machine; eff.: efficiency, the speed-up over one GPU over the number "
    "of "
    "GPUs, in %; time: of an iteration; wait: for other GPUs, in % of it, with contention and stragglers; "
    "exch.: "
    "gradients are on their way, in %; GPU, FP32: utilization of one, in %; GiB: memory of one; load: part "
    "of the "
    "iteration in which the busiest link is full, in %.";

Cell percent(double ratio) { return bare_percent_cell(ratio, 0); }
Cell percent_of(std::optional<double> ratio) { return ratio ? percent(*ratio) : Cell{}; }

constexpr const char* kAssumed = "*: assumed, as no --network is given.";

// The network asked for, or with a star the one that is assumed.
Cell network_cell(const std::string& asked, const std::string& assumed) {
  return assumed.empty() ? text_cell(asked) : Cell{assumed + "*", assumed};
}

std::vector<Cell> row_of(const ScalingPoint& point) {
  const Prediction& p = point.prediction;
  const Cluster& cluster = p.scenario.cluster;
  const Activity activity = activity_of(p);
  const Bytes memory = p.memory.total();
  const double rate = p.throughput();
  return {text_cell(p.model->name),
          text_cell(p.framework->name),
          count_cell(static_cast<double>(p.scenario.batch)),
          count_cell(cluster.machines),
          count_cell(cluster.gpus),
          network_cell(cluster.network, point.assumed_network),
          flag_cell(!point.assumed_network.empty()),
          text_cell(p.sync ? p.sync->method->name : ""),
          number_cell(rate, three_digits(rate) + " " + throughput_unit(*p.model)),
          number_cell(point.speed_up, three_digits(point.speed_up)),
          percent(point.efficiency),
          number_cell(p.iteration_time().si(), to_text(p.iteration_time())),
          percent(point.exposed / p.iteration_time()),
          percent(point.sync / p.iteration_time()),
          percent_of(gpu_utilization(activity)),
          percent_of(fp32_utilization(activity, *p.gpu)),
          number_cell(memory.si(), fmt::format("{:.1f}{}", in_unit(memory, "GiB"), p.fits ? "" : "!")),
          point.busiest ? percent(point.load) : Cell{},
          text_cell(point.busiest ? point.busiest->name : "")};
}

std::string network_advice(const Prediction& p, const ScalingAdvice& advice) {
  if (p.scenario.cluster.machines == 1) return "";
  if (!advice.hiding) return " no network hides its exchange;";
  const double gbit = in_unit(*advice.hiding, "Gbit/s");
  return fmt::format(" a network of {:.3g} Gbit/s hides its exchange (it waits less than {:.0f} %);", gbit,
                     kPercent * kHidden);
}

std::string advice_text(const Prediction& p, const ScalingAdvice& advice) {
  const Cluster& cluster = p.scenario.cluster;
  const bool machines = cluster.machines > 1;
  const std::string what = machines ? "machine" : "GPU";
  const std::string paying =
      advice.enough ? fmt::format("one {} more stops paying at {} (it adds less than half of what it could)",
                                  what, *advice.enough)
                    : fmt::format("one {} more pays as far as there are any", what);
  return fmt::format("{} on {}, batch {}, {} x {} GPUs{}:{} {}.", p.model->name, p.framework->name,
                     p.scenario.batch, cluster.machines, cluster.gpus,
                     cluster.network.empty() ? "" : ", " + cluster.network, network_advice(p, advice),
                     paying);
}

}  // namespace

Table scaling_table(std::span<const ScalingPoint> points, std::span<const AdvisedPoint> advised) {
  Table table;
  table.name = "points";
  table.columns = kColumns;
  std::set<std::string> machines;
  bool assumes = false;
  for (const ScalingPoint& point : points) {
    assumes = assumes || !point.assumed_network.empty();
    table.rows.push_back(row_of(point));
    if (point.prediction.sync) machines.insert(point.prediction.sync->machine);
  }
  const std::vector<std::string> names(machines.begin(), machines.end());
  if (!points.empty()) {
    table.preface = {
        fmt::format("{}, {}{}", points.front().prediction.gpu->title,
                    points.front().prediction.scenario.precision, names.empty() ? "" : "; " + joined(names)),
        ""};
  }
  const auto note = [&](const std::string& text) {
    for (const std::string& line : wrapped(text, kNoteWidth)) table.notes.push_back(line);
  };
  note(kLegend);
  if (assumes) note(kAssumed);
  for (const AdvisedPoint& advice : advised) note(advice_text(advice.point->prediction, advice.advice));
  return table;
}

}  // namespace tbdsim
