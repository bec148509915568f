#include "simulate/validation.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "hwspecs/base/number.h"
#include "hwspecs/base/suggest.h"

namespace tbdsim {
namespace {

constexpr std::string_view kSections[] = {"score", "fit", "context"};

// Columns that together say what was run; a table may lack some of them.
constexpr std::string_view kIdentity[] = {"gpu",     "framework",     "version", "precision", "model",
                                          "variant", "batch_per_gpu", "gpus",    "machines",  "network",
                                          "method",  "metric",        "unit"};

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

std::map<std::string, double> noise_by_group(
    const std::map<std::vector<std::string>, std::vector<double>>& repeats) {
  std::map<std::string, std::vector<double>> spreads;
  for (const auto& [key, measured] : repeats) {
    if (measured.size() > 1) spreads[key.front()].push_back(spread(measured));
  }
  std::map<std::string, double> noise;
  for (auto& [group, values] : spreads) {
    std::sort(values.begin(), values.end());
    noise[group] = quantile(values, 0.5);
  }
  return noise;
}

// "score" and "fit" rows judge apart; context rows are real but no fair target. What is misspelt must not be
// scored.
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

// Rows of a table whose GPU is not stated are judged as speed-ups over one of the same GPU, which their
// column `why` names and which stands above them: what is predicted is scaled as that one's value is.
class SpeedUps {
 public:
  explicit SpeedUps(const CsvReader& reader)
      : id_(reader.find_column("id")), why_(reader.find_column("why")) {}

  void scale(const std::vector<std::string>& row, double measured, RowPrediction& prediction) {
    if (!id_ || !why_ || !prediction.ok()) return;
    factors_[row[*id_]] = measured / prediction.predicted;
    const std::size_t at = row[*why_].find(kOver);
    if (at == std::string::npos) return;
    const std::string rest = row[*why_].substr(at + kOver.size());
    const auto base = factors_.find(rest.substr(0, rest.find_first_not_of("0123456789abcdef")));
    if (base == factors_.end()) {
      prediction = {"the row it is a speed-up over is not above it", 0, {}};
      return;
    }
    for (double* number : {&prediction.predicted, &prediction.interval.low, &prediction.interval.high})
      *number *= base->second;
  }

 private:
  static constexpr std::string_view kOver = "speed-up over row ";
  std::optional<std::size_t> id_, why_;
  std::map<std::string, double> factors_;  // measured over predicted
};

}  // namespace

double quantile(const std::vector<double>& sorted, double q) {
  const double at = q * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (at - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

double Configuration::error() const {
  double log_sum = 0;
  for (const double value : measured) log_sum += std::log(value);
  return prediction.predicted / std::exp(log_sum / static_cast<double>(measured.size())) - 1;
}

bool Configuration::inside_interval() const {
  const double centre = prediction.predicted / (1 + error());
  return prediction.interval.low <= centre && centre <= prediction.interval.high;
}

Validation validate_runs(std::istream& in, const std::string& file, const std::string& by, Library& library,
                         const std::string& profile, const std::function<void(std::size_t)>& progress) {
  CsvReader reader(in, file);
  const RunColumns columns(reader);
  const std::size_t value = reader.column("value");
  const std::size_t use = reader.column("use");
  const std::size_t split = reader.column("split");
  const std::size_t group = reader.column(by);
  std::vector<std::size_t> identity;
  for (const std::string_view name : kIdentity) {
    if (const auto column = reader.find_column(name)) identity.push_back(*column);
  }

  Validation result;
  SpeedUps speed_ups(reader);
  std::map<std::vector<std::string>, Configuration> configurations;
  std::map<std::vector<std::string>, std::vector<double>>
      repeats;  // by group and identity, in whatever section
  std::vector<std::string> row;
  for (std::size_t rows = 1; reader.next(row); ++rows) {
    progress(rows);
    std::vector<std::string> key{section_of(row[use], row[split], reader.row_mark()), row[group]};
    for (const std::size_t column : identity) key.push_back(row[column]);
    const auto measured = parse_number(row[value]);
    if (!measured || *measured <= 0) {
      ++result.not_covered["value is not a positive number"];
      continue;
    }
    Configuration& configuration = configurations[key];
    if (configuration.measured.empty()) {
      configuration.section = key[0];
      configuration.group = key[1];
      configuration.prediction = predict_row(columns, row, library, profile);
      speed_ups.scale(row, *measured, configuration.prediction);
    }
    configuration.measured.push_back(*measured);
    repeats[{key.begin() + 1, key.end()}].push_back(*measured);
    if (!configuration.prediction.ok()) ++result.not_covered[configuration.prediction.status];
  }

  std::map<std::pair<std::string, std::string>, std::vector<const Configuration*>> groups;
  for (const auto& [key, configuration] : configurations) {
    groups[{configuration.section, configuration.group}].push_back(&configuration);
  }
  const std::map<std::string, double> noise = noise_by_group(repeats);
  for (const std::string_view section : kSections) {
    for (const auto& [key, members] : groups) {
      if (key.first != section) continue;
      result.groups.push_back(errors_of(members));
      const bool judged = result.groups.back().configurations > 0;
      if (const auto found = noise.find(key.second); judged && found != noise.end())
        result.groups.back().noise = found->second;
    }
  }
  return result;
}

}  // namespace tbdsim
