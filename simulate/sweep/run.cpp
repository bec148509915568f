#include "simulate/sweep/run.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <variant>

#include <fmt/format.h>
#include <tbb/enumerable_thread_specific.h>
#include <tbb/parallel_for.h>

#include "hwspecs/base/error.h"
#include "hwspecs/base/number.h"
#include "hwspecs/base/suggest.h"
#include "simulate/sweep/layout_sweep.h"
#include "simulate/sweep/mpi_session.h"
#include "simulate/sweep/point_predictor.h"

namespace tbdsim {
namespace {

constexpr std::int64_t kAtOnce = 1'024;   // points that a rank predicts in one turn
constexpr std::int64_t kNeighbours = 64;  // successive points of one thread, which share work

// Predicts the points of one thread.
using Predictor = std::variant<PointPredictor, LayoutPredictor>;
using Predictors = tbb::enumerable_thread_specific<Predictor>;

Predictor predictor_of(const Sweep& sweep, SpecCache& specs, const std::shared_ptr<StepCaches>& steps) {
  if (sweep.of_layouts) return LayoutPredictor(sweep, specs);
  return PointPredictor(sweep, specs, steps);
}

std::vector<SweepRow> rows_from(const SweepRun& run, std::int64_t first, Predictors& predictors) {
  const std::int64_t end = std::min(first + kAtOnce, run.end);
  std::vector<SweepRow> rows(static_cast<std::size_t>(end - first));
  tbb::parallel_for(tbb::blocked_range<std::int64_t>(first, end, kNeighbours), [&](const auto& range) {
    Predictor& predictor = predictors.local();
    for (std::int64_t point = range.begin(); point < range.end(); ++point) {
      rows[static_cast<std::size_t>(point - first)] = row_of(
          run.sweep, std::visit([&](auto& of) { return of.at(point); }, predictor), run.choosing, run.format);
    }
  });
  return rows;
}

void pack(std::string& bytes, const void* data, std::size_t size) {
  const auto count = static_cast<std::uint64_t>(size);
  bytes.append(reinterpret_cast<const char*>(&count), sizeof(count));
  bytes.append(static_cast<const char*>(data), size);
}

std::string_view unpack(std::string_view& bytes) {
  std::uint64_t count = 0;
  std::memcpy(&count, bytes.data(), sizeof(count));
  const std::string_view field = bytes.substr(sizeof(count), count);
  bytes.remove_prefix(sizeof(count) + count);
  return field;
}

std::string packed(const std::vector<SweepRow>& rows) {
  std::string bytes;
  for (const SweepRow& row : rows) {
    pack(bytes, row.line.data(), row.line.size());
    pack(bytes, row.why_not.data(), row.why_not.size());
    pack(bytes, row.group.data(), row.group.size());
    pack(bytes, row.values.data(), row.values.size() * sizeof(double));
  }
  return bytes;
}

std::vector<SweepRow> unpacked(std::string_view bytes) {
  std::vector<SweepRow> rows;
  while (!bytes.empty()) {
    SweepRow& row = rows.emplace_back();
    row.line = unpack(bytes);
    row.why_not = unpack(bytes);
    row.group = unpack(bytes);
    const std::string_view values = unpack(bytes);
    row.values.resize(values.size() / sizeof(double));
    if (!values.empty()) std::memcpy(row.values.data(), values.data(), values.size());
  }
  return rows;
}

}  // namespace

Shard parse_shard(const std::string& text) {
  const std::size_t slash = std::min(text.find('/'), text.size());
  const auto index = parse_whole_number(text.substr(0, slash));
  const auto count = slash == text.size() ? std::nullopt : parse_whole_number(text.substr(slash + 1));
  if (!index || !count || *index < 1 || *index > *count || *count > kMostPoints)
    throw UsageError("--shard: " + in_quotes(text) + " is no part of a sweep; expected as 1/4 to 4/4");
  return {*index, *count};
}

void limit_to(const Shard& shard, SweepRun& run) {
  const std::int64_t points = run.end - run.first, whole = points / shard.count, rest = points % shard.count;
  const auto begin = [&](std::int64_t part) { return run.first + part * whole + std::min(part, rest); };
  const std::int64_t first = begin(shard.index - 1);
  run.end = begin(shard.index);
  run.first = first;
}

// Ranks take turns, a thousand points each; the first gets all rows in order.
void run_sweep(const SweepRun& run, SpecCache& specs) {
  const auto steps = std::make_shared<StepCaches>(specs);
  Predictors predictors([&] { return predictor_of(run.sweep, specs, steps); });
  const Ranks here = ranks();
  int turn = 0;
  for (std::int64_t first = run.first; first < run.end; first += kAtOnce) {
    const bool own = turn == here.rank;
    if (own && here.rank == 0) {
      run.take(rows_from(run, first, predictors), first);
    } else if (own) {
      send(0, packed(rows_from(run, first, predictors)));
    } else if (here.rank == 0) {
      run.take(unpacked(receive(turn)), first);
    }
    turn = (turn + 1) % here.count;
  }
}

}  // namespace tbdsim
