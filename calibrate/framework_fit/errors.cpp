#include "calibrate/framework_fit/errors.h"

#include <cmath>
#include <set>

namespace tbdsim {
namespace {

using Progress = std::function<void()>;
using Key = std::function<std::string(const RunRow&)>;

// Adds rows and sums of errors.
void add(RowErrors& errors, const Framework& before, const Framework& after, const RowsToFit& rows) {
  for (const RunRow* row : rows) {
    ++errors.rows;
    errors.before += std::abs(row->error(before));
    errors.after += std::abs(row->error(after));
  }
}

std::optional<RowErrors> mean_of(RowErrors sums) {
  if (sums.rows == 0) return std::nullopt;
  sums.before /= static_cast<double>(sums.rows);
  sums.after /= static_cast<double>(sums.rows);
  return sums;
}

template <class Condition>
RowsToFit rows_where(const RowsToFit& rows, Condition condition) {
  RowsToFit found;
  for (const RunRow* row : rows) {
    if (condition(*row)) found.push_back(row);
  }
  return found;
}

std::optional<RowErrors> left_out(const Framework& framework, const FrameworkFit& fit, const RowsToFit& rows,
                                  const Key& key, const Progress& progress) {
  std::set<std::string> names;
  for (const RunRow* row : rows) names.insert(key(*row));
  if (names.size() < 2) return std::nullopt;
  RowErrors sums;
  for (const std::string& name : names) {
    const RowsToFit seen = rows_where(rows, [&](const RunRow& row) { return key(row) != name; });
    const FrameworkFit fold = refit_framework(framework, fit, seen, progress);
    add(sums, framework, fold.framework,
        rows_where(rows, [&](const RunRow& row) { return key(row) == name; }));
  }
  return mean_of(sums);
}

std::optional<RowErrors> large_batches(const Framework& framework, const FrameworkFit& fit,
                                       const RowsToFit& rows, const Progress& progress) {
  const auto batch = [](const RunRow& row) { return row.prediction.scenario.batch; };
  const RowsToFit small = rows_where(rows, [&](const RunRow& row) { return batch(row) <= kSmallBatch; });
  const RowsToFit large = rows_where(rows, [&](const RunRow& row) { return batch(row) >= kLargeBatch; });
  if (small.empty() || large.empty()) return std::nullopt;
  RowErrors sums;
  add(sums, framework, refit_framework(framework, fit, small, progress).framework, large);
  return mean_of(sums);
}

double error_with_gpus(const FrameworkFit& fit, const RowsToFit& rows) {
  double sum = 0;
  for (const RunRow* row : rows) {
    const double factor = fit.gpus.at(gpu_and_precision(*row));
    sum += std::abs(row->error(with_kernel_factor(fit.framework, factor)));
  }
  return sum / static_cast<double>(rows.size());
}

}  // namespace

RowsToFit pointers_to(const std::vector<RunRow>& rows) {
  RowsToFit pointers;
  for (const RunRow& row : rows) pointers.push_back(&row);
  return pointers;
}

FitErrors errors_of(const Framework& framework, const FrameworkFit& fit, const RunRows& rows,
                    const Progress& progress) {
  const RowsToFit seen = pointers_to(rows.fit);
  const auto of_framework = [&](const RowsToFit& some) {
    RowErrors sums;
    add(sums, framework, fit.framework, some);
    return mean_of(sums);
  };
  const auto model = [](const RunRow& row) { return row.prediction.scenario.model; };
  const auto gpu = [](const RunRow& row) { return row.prediction.scenario.gpu; };
  const auto set = [](const RunRow& row) { return row.set; };
  return {.fit = of_framework(seen).value_or(RowErrors{}),
          .with_gpus = error_with_gpus(fit, seen),
          .left_out_model = left_out(framework, fit, seen, model, progress),
          .left_out_gpu = left_out(framework, fit, seen, gpu, progress),
          .left_out_set = left_out(framework, fit, seen, set, progress),
          .large_batch = large_batches(framework, fit, seen, progress),
          .score = of_framework(pointers_to(rows.score))};
}

}  // namespace tbdsim
