#include "calibrate/fit/collective_fit.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include <ceres/ceres.h>

#include "costmodel/communication/topology.h"
#include "hwspecs/base/csv.h"
#include "hwspecs/base/number.h"
#include "hwspecs/base/suggest.h"

namespace tbdsim {
namespace {

constexpr double kLossBend = 0.1;  // bend of the loss, in ln(time): curves have kinks where protocols change
constexpr int kMostNumbers = 5;

struct TimeColumn {
  const char* name;
  double seconds;
};
constexpr TimeColumn kTimes[] = {
    {"time_ms", kMilli}, {"median_ms", kMilli}, {"latency_us", kMicro}, {"time_out_of_place_ns", kNano}};

std::size_t column_of(const CsvReader& reader, std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names) {
    if (const auto column = reader.find_column(name)) return *column;
  }
  return reader.column(*names.begin());  // throws
}

// The values that a row must have to be fitted, by column.
class RowFilter {
 public:
  RowFilter(const CsvReader& reader, const std::map<std::string, std::string>& only) {
    for (const auto& [name, value] : only) equal_.emplace_back(reader.column(name), value);
    for (const char* name : {"op", "collective"}) {
      if (const auto column = reader.find_column(name)) equal_.emplace_back(*column, "all_reduce");
    }
    if (const auto machines = reader.find_column("machines")) equal_.emplace_back(*machines, "1");
    algorithm_ = reader.find_column("algorithm");
  }
  [[nodiscard]] bool takes(const std::vector<std::string>& row) const {
    if (algorithm_ && !row[*algorithm_].starts_with("NCCL")) return false;
    return std::all_of(equal_.begin(), equal_.end(),
                       [&](const auto& column) { return row[column.first] == column.second; });
  }

 private:
  std::vector<std::pair<std::size_t, std::string>> equal_;
  std::optional<std::size_t> algorithm_;
};

using Numbers = std::array<double, kMostNumbers>;  // logarithms: launch, step, efficiency, root, in_switch

// The terms of CollectiveCost that the link has beside launch, step and efficiency.
struct Form {
  bool in_switch = false;
  bool protocols = false;  // two: the fourth number is simple_step and root is 0; else it is root
};

CollectiveCost cost_of(const Numbers& logs, const Form& form) {
  const Seconds fourth(std::exp(logs[3]));
  return {.launch = Seconds(std::exp(logs[0])),
          .step = Seconds(std::exp(logs[1])),
          .efficiency = std::exp(logs[2]),
          .root = form.protocols ? Seconds(0) : fourth,
          .in_switch = form.in_switch ? std::exp(logs[4]) : 0,
          .simple_step = form.protocols ? fourth : Seconds(0)};
}

// One measured all-reduce with the ranks and rings of its number of GPUs.
struct Point {
  AllReduceRanks ranks;
  Bytes bytes;
  double time = 0;

  [[nodiscard]] double log_error(const CollectiveCost& cost) const {
    AllReduceRanks with = ranks;
    with.inner.cost = cost;
    return std::log(all_reduce_time(with, bytes).si() / time);
  }
};

struct PointError {
  const Point& point;
  Form form;
  bool operator()(double const* const* logs, double* residual) const {
    Numbers numbers{};
    std::copy_n(logs[0], kMostNumbers, numbers.begin());
    residual[0] = point.log_error(cost_of(numbers, form));
    return std::isfinite(residual[0]);
  }
};

CollectiveCost fitted(const std::vector<Point>& points, const Form& form, int without) {
  Numbers logs{std::log(5e-6), std::log(2e-6), 0, std::log(1e-5), std::log(0.6)};
  ceres::Problem problem;
  for (const Point& point : points) {
    if (point.ranks.inner.ranks == without) continue;
    auto* cost = new ceres::DynamicNumericDiffCostFunction<PointError>(new PointError{point, form});
    cost->AddParameterBlock(kMostNumbers);
    cost->SetNumResiduals(1);
    problem.AddResidualBlock(cost, new ceres::SoftLOneLoss(kLossBend), logs.data());
  }
  constexpr double kLeastTime = 1e-8;  // s
  constexpr double kMostTime = 1e-2;
  for (const int time : {0, 1, 3}) {
    problem.SetParameterLowerBound(logs.data(), time, std::log(kLeastTime));
    problem.SetParameterUpperBound(logs.data(), time, std::log(kMostTime));
  }
  for (const int part : {2, 4}) {
    problem.SetParameterLowerBound(logs.data(), part, std::log(0.05));
    problem.SetParameterUpperBound(logs.data(), part, std::log(part == 2 ? 1.5 : 1));
  }
  ceres::Solver::Options options;
  options.linear_solver_type = ceres::DENSE_QR;
  options.logging_type = ceres::SILENT;
  options.max_num_iterations = 200;
  ceres::Solver::Summary summary;
  ceres::Solve(options, &problem, &summary);
  return cost_of(logs, form);
}

double mean_error(const std::vector<Point>& points, const CollectiveCost& cost, int gpus) {
  double sum = 0;
  int rows = 0;
  for (const Point& point : points) {
    if (point.ranks.inner.ranks != gpus) continue;
    sum += std::abs(std::exp(point.log_error(cost)) - 1);
    ++rows;
  }
  return sum / rows;
}

}  // namespace

std::vector<MeasuredCollective> read_collectives(std::istream& in, const std::string& file,
                                                 const std::map<std::string, std::string>& only) {
  CsvReader reader(in, file);
  const RowFilter filter(reader, only);
  const std::size_t gpus = column_of(reader, {"gpus", "ngpu", "num_gpus"});
  const std::size_t bytes = column_of(reader, {"bytes", "size_bytes"});
  const TimeColumn* time = std::find_if(std::begin(kTimes), std::end(kTimes), [&](const TimeColumn& column) {
    return reader.find_column(column.name).has_value();
  });
  if (time == std::end(kTimes)) throw SpecError(reader.row_mark(), "no column of times; expected time_ms");
  const std::size_t seconds = reader.column(time->name);
  std::vector<MeasuredCollective> measured;
  for (std::vector<std::string> row; reader.next(row);) {
    if (!filter.takes(row)) continue;
    const auto ranks = parse_whole_number(row[gpus]);
    const auto size = parse_number(row[bytes]);
    const auto value = parse_number(row[seconds]);
    constexpr std::int64_t kMostRanks = 1000;
    if (!ranks || *ranks < 2 || *ranks > kMostRanks || !size || *size <= 0 || !value || *value <= 0) {
      throw SpecError(reader.row_mark(), "expected 2 to 1000 GPUs, bytes and a time above zero, not " +
                                             in_quotes(row[gpus]) + ", " + in_quotes(row[bytes]) + ", " +
                                             in_quotes(row[seconds]));
    }
    measured.push_back({static_cast<int>(*ranks), Bytes(*size), Seconds(*value * time->seconds)});
  }
  return measured;
}

CommunicationFit fit_communication(const MachineSpec& machine, const GpuSpec& gpu,
                                   const std::vector<MeasuredCollective>& measured) {
  if (measured.empty()) throw UsageError("no row is left to fit to; expected all-reduces of one machine");
  std::map<int, RankGroup> groups;
  for (const MeasuredCollective& row : measured) {
    if (groups.contains(row.gpus)) continue;
    const Rings rings = Topology(machine, gpu, row.gpus).rings();
    RankGroup group{.ranks = row.gpus, .bandwidth = rings.bandwidth, .per_rank = {}, .cost = {}};
    if (machine.nvlink && machine.nvlink->link.collective.in_switch > 0)
      group.per_rank = machine.nvlink->link.bandwidth * static_cast<double>(machine.nvlink->to_switch);
    groups[row.gpus] = group;
  }
  std::vector<Point> points;
  for (const MeasuredCollective& row : measured)
    points.push_back({{groups[row.gpus], {}}, row.bytes, row.time.si()});
  const LinkSpec& link = machine.nvlink ? machine.nvlink->link : machine.root_ports.front().link;
  const Form form{link.collective.in_switch > 0, link.collective.simple_step > Seconds(0)};
  CommunicationFit fit{.cost = fitted(points, form, 0), .errors = {}, .held_out = {}};
  fit.rows = static_cast<int>(points.size());
  for (const auto& [gpus, group] : groups) {
    fit.errors[gpus] = mean_error(points, fit.cost, gpus);
    fit.error += fit.errors[gpus] / static_cast<double>(groups.size());
    if (groups.size() > 1) fit.held_out[gpus] = mean_error(points, fitted(points, form, gpus), gpus);
  }
  return fit;
}

}  // namespace tbdsim
