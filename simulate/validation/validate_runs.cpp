#include "simulate/validation/validate_runs.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <optional>
#include <tuple>

#include "hwspecs/base/number.h"
#include "hwspecs/base/required_columns.h"
#include "hwspecs/base/statistics.h"
#include "hwspecs/base/suggest.h"
#include "simulate/prediction/predict.h"

namespace tbdsim {
namespace {

constexpr std::string_view kSections[] = {"score", "fit", "context"};

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

// Standard deviation of ln(value).
double spread(const std::vector<double>& measured) {
  std::vector<double> logs;
  for (const double value : measured) logs.push_back(std::log(value));
  const double centre = mean(logs);
  double squares = 0;
  for (const double log : logs) squares += (log - centre) * (log - centre);
  return std::sqrt(squares / static_cast<double>(measured.size() - 1));
}

GroupErrors errors_of(const std::vector<const Configuration*>& configurations) {
  GroupErrors e;
  e.section = configurations.front()->section;
  e.group = configurations.front()->group;
  std::vector<double> sizes;
  for (const Configuration* c : configurations) {
    e.rows += static_cast<int>(c->measured.size());
    if (!c->prediction.ok()) continue;
    e.covered_rows += static_cast<int>(c->measured.size());
    ++e.configurations;
    sizes.push_back(std::abs(c->error()));
    e.bias += c->error();
    e.coverage += c->inside_interval() ? 1 : 0;
  }
  if (sizes.empty()) return e;
  std::sort(sizes.begin(), sizes.end());
  e.mean = mean(sizes);
  e.median = quantile(sizes, 0.5);
  e.p90 = quantile(sizes, 0.9);
  e.max = sizes.back();
  e.bias /= static_cast<double>(sizes.size());
  e.coverage /= static_cast<double>(sizes.size());
  return e;
}

// By group; repeats count in whatever section they are.
std::map<std::string, double> noise_by_group(const std::vector<Configuration>& configurations) {
  std::map<std::pair<std::string, std::vector<std::string>>, std::vector<double>> repeats;
  for (const Configuration& c : configurations) {
    std::vector<double>& measured = repeats[{c.group, c.run}];
    measured.insert(measured.end(), c.measured.begin(), c.measured.end());
  }
  std::map<std::string, std::vector<double>> spreads;
  for (const auto& [key, measured] : repeats) {
    if (measured.size() > 1) spreads[key.first].push_back(spread(measured));
  }
  std::map<std::string, double> noise;
  for (auto& [group, values] : spreads) {
    std::sort(values.begin(), values.end());
    noise[group] = quantile(values, 0.5);
  }
  return noise;
}

// The section of a row: "score", "fit" or, for measured runs that are no fair target, "context". Throws
// SpecError for a misspelt word.
std::string section_of(const std::string& use, const std::string& split, const Mark& mark) {
  if (use != "time" && use != "memory" && use != "context") {
    throw SpecError(mark, "use " + in_quotes(use) + " is unknown; expected time, memory or context");
  }
  if (use == "context") return "context";
  if (split != "fit" && split != "score") {
    throw SpecError(mark, "split " + in_quotes(split) + " is unknown; expected fit or score");
  }
  return split;
}

// The first of `faults` that a row has; nullptr for none.
const KnownFault* fault_of(std::span<const KnownFault> faults, const RunColumns& columns,
                           std::span<const std::string> row) {
  const auto found = std::find_if(faults.begin(), faults.end(),
                                  [&](const KnownFault& fault) { return fault.has(columns, row); });
  return found == faults.end() ? nullptr : &*found;
}

// Section, group and what was run -> configuration.
using ConfigurationKey = std::tuple<std::string, std::string, std::vector<std::string>>;
using Configurations = std::map<ConfigurationKey, Configuration>;

// Columns of one table that validation reads beside those of a prediction.
struct ValidationColumns {
  ValidationColumns(const CsvReader& reader, const std::string& by)
      : value((require_columns(reader, std::array<std::string_view, 4>{"value", "use", "split", by}),
               reader.column("value"))),
        use(reader.column("use")),
        split(reader.column("split")),
        group(reader.column(by)) {
    for (const std::string_view name : kRunIdentity) identity.push_back(reader.find_column(name));
  }
  [[nodiscard]] std::vector<std::string> run(const std::vector<std::string>& row) const {
    std::vector<std::string> texts;
    for (const auto& column : identity) texts.push_back(column ? row[*column] : "");
    return texts;
  }

  std::size_t value, use, split, group;
  std::vector<std::optional<std::size_t>> identity;
};

const Configuration& add_row(const ConfigurationKey& key, double measured,
                             const std::function<RowPrediction()>& predict, Configurations& configurations,
                             std::map<std::string, int>& not_covered) {
  Configuration& configuration = configurations[key];
  if (configuration.measured.empty()) {
    std::tie(configuration.section, configuration.group, configuration.run) = key;
    configuration.prediction = predict();
  }
  configuration.measured.push_back(measured);
  if (!configuration.prediction.ok()) ++not_covered[configuration.prediction.status];
  return configuration;
}

std::vector<GroupErrors> errors_by_group(const std::vector<Configuration>& configurations) {
  std::map<std::pair<std::string, std::string>, std::vector<const Configuration*>> members;
  for (const Configuration& c : configurations) members[{c.section, c.group}].push_back(&c);
  const std::map<std::string, double> noise = noise_by_group(configurations);
  std::vector<GroupErrors> groups;
  for (const std::string_view section : kSections) {
    for (const auto& [key, of_group] : members) {
      if (key.first != section) continue;
      GroupErrors& errors = groups.emplace_back(errors_of(of_group));
      const auto found = noise.find(key.second);
      if (errors.configurations > 0 && found != noise.end()) errors.noise = found->second;
    }
  }
  return groups;
}

// Rows that are judged as speed-ups: the column `relative_to` of a row has the `id` of one above it, and its
// prediction is multiplied by that row's measured over predicted value, so that only the ratio of the two
// counts.
class RelativeRows {
 public:
  explicit RelativeRows(const CsvReader& reader) : relative_to_(reader.find_column("relative_to")) {
    if (relative_to_) id_ = reader.column("id");
  }

  // To be called for every row, also for repeats of one configuration.
  void add(const std::vector<std::string>& row, double measured, const RowPrediction& prediction) {
    if (relative_to_ && prediction.ok()) measured_over_predicted_[row[id_]] = measured / prediction.predicted;
  }

  void scale(const std::vector<std::string>& row, RowPrediction& prediction) const {
    if (!relative_to_ || row[*relative_to_].empty() || !prediction.ok()) return;
    const auto base = measured_over_predicted_.find(row[*relative_to_]);
    if (base == measured_over_predicted_.end()) {
      prediction = {"relative_to names no predicted row above it", 0, {}};
      return;
    }
    for (double* number : {&prediction.predicted, &prediction.interval.low, &prediction.interval.high})
      *number *= base->second;
  }

 private:
  std::optional<std::size_t> relative_to_;
  std::size_t id_ = 0;
  std::map<std::string, double> measured_over_predicted_;  // by id
};

}  // namespace

double Configuration::error() const {
  double log_sum = 0;
  for (const double value : measured) log_sum += std::log(value);
  return prediction.predicted / std::exp(log_sum / static_cast<double>(measured.size())) - 1;
}

bool Configuration::inside_interval() const {
  const double centre = prediction.predicted / (1 + error());
  return prediction.interval.low <= centre && centre <= prediction.interval.high;
}

Validation validate_runs(std::span<const RunsTable> tables, const std::string& by,
                         std::span<const KnownFault> faults, const RowPredictor& predictor,
                         const std::function<void(std::size_t)>& progress) {
  Validation result;
  Configurations configurations;
  std::vector<std::string> row;
  std::size_t rows = 0;
  for (const RunsTable& table : tables) {
    CsvReader reader(table.in, table.file);
    const RunColumns columns(reader);
    const ValidationColumns judged(reader, by);
    RelativeRows relative(reader);
    while (reader.next(row)) {
      progress(++rows);
      std::string section = section_of(row[judged.use], row[judged.split], reader.row_mark());
      const KnownFault* fault = fault_of(faults, columns, row);
      if (fault != nullptr && section != "context") {
        ++result.set_aside[fault->model + " of " + fault->set + ": " + fault->why];
        section = "context";
      }
      const auto measured = parse_number(row[judged.value]);
      if (!measured || *measured <= 0) {
        ++result.not_covered["value is not a positive number"];
        continue;
      }
      const Configuration& configuration = add_row(
          {section, row[judged.group], judged.run(row)}, *measured,
          [&] {
            RowPrediction prediction = predictor(columns, row);
            relative.scale(row, prediction);
            return prediction;
          },
          configurations, result.not_covered);
      relative.add(row, *measured, configuration.prediction);
    }
  }
  for (auto& [key, configuration] : configurations) result.configurations.push_back(std::move(configuration));
  result.groups = errors_by_group(result.configurations);
  return result;
}

Validation validate_runs(std::istream& in, const std::string& file, const std::string& by,
                         const Resolver& resolve, const std::string& profile,
                         const std::function<void(std::size_t)>& progress) {
  const RunsTable table{in, file};
  return validate_runs(
      std::span(&table, 1), by, known_faults(resolve.catalog()),
      [&](const RunColumns& columns, std::span<const std::string> row) {
        return predict_row(columns, row, resolve, profile);
      },
      progress);
}

}  // namespace tbdsim
