#include "simulate/report/memory_tables.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "hwspecs/base/quantity_text.h"
#include "simulate/analysis/allocator_replay.h"
#include "simulate/report/cells.h"

namespace tbdsim {
namespace {

Cell bytes_cell(Bytes bytes) { return gib_cell(bytes, 3); }

Cell share_cell(Bytes part, Bytes whole) { return bare_percent_cell(whole > Bytes() ? part / whole : 0); }

void append(std::vector<Cell>& row, std::vector<Cell> cells) {
  for (Cell& cell : cells) row.push_back(std::move(cell));
}

std::vector<Column> scenario_columns() {
  return {{"model", ""}, {"variant", ""}, {"framework", ""}, {"gpu", ""}, {"precision", ""}, {"batch", ""}};
}

std::vector<Cell> scenario_cells(const Prediction& p) {
  return {text_cell(p.model->name),        text_cell(p.scenario.variant),
          text_cell(p.framework->name),    text_cell(p.gpu->name),
          text_cell(p.scenario.precision), count_cell(static_cast<double>(largest_iteration(p).batch))};
}

std::vector<Column> use_columns() {
  return {{"weights", "weights", true},   {"weight_gradients", "gradients", true},
          {"feature_maps", "maps", true}, {"workspace", "workspace", true},
          {"dynamic", "dynamic", true},   {"total", "GiB", true}};
}

std::vector<Cell> use_cells(const MemoryUse& use) {
  return {bytes_cell(use[MemoryCategory::weights]),      bytes_cell(use[MemoryCategory::weight_gradients]),
          bytes_cell(use[MemoryCategory::feature_maps]), bytes_cell(use[MemoryCategory::workspace]),
          bytes_cell(use[MemoryCategory::dynamic]),      bytes_cell(use.total())};
}

void by_category(const Prediction& p, Table& table) {
  for (Column& column : std::vector<Column>{
           {"category", "category"}, {"bytes", "GiB", true}, {"share", "%", true}, {"what", "what"}})
    table.columns.push_back(column);
  const MemoryPlan& m = p.memory;
  const auto add = [&](std::string_view name, Bytes bytes, std::string_view what) {
    std::vector<Cell>& row = table.rows.emplace_back(scenario_cells(p));
    append(row, {text_cell(name), bytes_cell(bytes), share_cell(bytes, m.model()), text_cell(what)});
  };
  add("weights", m.use[MemoryCategory::weights], "parameters and moving statistics");
  add("weight_gradients", m.use[MemoryCategory::weight_gradients], "gradients of the parameters");
  add("feature_maps", m.use[MemoryCategory::feature_maps],
      "kept for the backward pass, and gradients of maps");
  add("workspace", m.use[MemoryCategory::workspace],
      "scratch memory of kernels and of the algorithms chosen");
  add("dynamic", m.use[MemoryCategory::dynamic], "optimizer state, further copies of the parameters");
}

void by_layer(const Prediction& p, Table& table) {
  for (Column& column : std::vector<Column>{{"layer", "layer"}, {"type", "type"}})
    table.columns.push_back(column);
  for (Column& column : use_columns()) table.columns.push_back(column);
  table.columns.push_back({"share", "%", true});
  for (const LayerMemory& layer : memory_by_layer(p)) {
    std::vector<Cell>& row = table.rows.emplace_back(scenario_cells(p));
    append(row, {text_cell(layer.layer), text_cell(layer.type)});
    append(row, use_cells(layer.use));
    append(row, {share_cell(layer.use.total(), p.memory.model())});
  }
}

void over_time(const Prediction& p, Table& table) {
  for (Column& column : std::vector<Column>{
           {"layer", "layer"}, {"phase", "phase"}, {"kernel", "kernel"}, {"start", "ms", true}, {"end", ""}})
    table.columns.push_back(column);
  for (Column& column : use_columns()) table.columns.push_back(column);
  const TrainingStep& step = *largest_iteration(p).step;
  const auto time_cell = [](Seconds time) {
    return number_cell(time.si(), fmt::format("{:.3f}", in_unit(time, "ms")));
  };
  for (const MemoryMoment& moment : memory_over_time(largest_iteration(p), p.memory.kept_workspaces)) {
    const Kernel& kernel = step.kernels[moment.kernel];
    const std::string_view layer =
        kernel.layer < 0 ? "(all)"
                         : std::string_view(step.layers[static_cast<std::size_t>(kernel.layer)].name);
    std::vector<Cell>& row = table.rows.emplace_back(scenario_cells(p));
    append(row, {text_cell(layer), text_cell(phase_name(kernel)), text_cell(kernel.op),
                 time_cell(moment.start), time_cell(moment.end)});
    append(row, use_cells(moment.use));
  }
}

// "fits", or how much is missing and how many samples would fit.
std::string verdict(const Prediction& p) {
  const Bytes size = p.usable_memory();
  if (p.fits)
    return fmt::format("fits into {}; {} are left.", memory_text(size, p.gpu->memory_size),
                       to_text(size - p.memory.needed()));
  const std::int64_t largest = p.largest_batch();
  const std::string fitting = largest == 0 ? "not even one sample fits (--remedies: what would help)"
                                           : fmt::format("the largest batch that fits is {}", largest);
  const std::string fragments =
      p.memory.fragments > Bytes() ? fmt::format(", with {} of fragments", to_text(p.memory.fragments)) : "";
  return fmt::format("does not fit into {}: {} are missing{}; {}.", memory_text(size, p.gpu->memory_size),
                     to_text(p.memory.needed() - size), fragments, fitting);
}

// Bytes requested, allocated and reserved for the model's memory. A static plan reserves what it allocates.
AllocatorUse allocator_use(const Prediction& p) {
  if (!p.framework->allocator.static_plan) return replay(p).use;
  Framework exact = *p.framework;
  exact.allocator.block = exact.allocator.large_block = Bytes();
  const Iteration& iteration = largest_iteration(p);
  const auto batch = static_cast<double>(iteration.batch);
  const MemoryPlan requested = plan_memory(*iteration.memory, *iteration.step, iteration.costs, batch, exact);
  return {requested.model(), p.memory.model(), p.memory.model() + p.memory.context - exact.context_memory};
}

std::string length_text(const Prediction& p) {
  const std::int64_t length = largest_iteration(p).bucket.length;
  return length == 0 ? "" : fmt::format(" of length {}", length);
}

}  // namespace

Table memory_table(const Prediction& p, MemoryView view, std::optional<Bytes> over_sizes) {
  Table table;
  table.name = "memory";
  table.preface = {
      fmt::format("{} ({}) on {}, {}, batch {}{}, {}", p.model->title, p.scenario.variant, p.framework->title,
                  p.gpu->title, largest_iteration(p).batch, length_text(p), p.scenario.precision),
      ""};
  table.columns = scenario_columns();
  if (view == MemoryView::category) by_category(p, table);
  if (view == MemoryView::layer) by_layer(p, table);
  if (view == MemoryView::time) over_time(p, table);
  const MemoryPlan& m = p.memory;
  const auto total = [&](std::string_view name, Bytes bytes) {
    table.totals.emplace_back(name, number_cell(bytes.si(), to_text(bytes)));
  };
  total("model", m.model());
  total("context", m.context);
  total("total", m.total());
  total("usable", p.usable_memory());
  total("nominal", p.gpu->memory_size);
  if (view == MemoryView::category) {
    const AllocatorUse use = allocator_use(p);
    total("requested", use.requested);
    total("allocated", use.allocated);
    total("reserved", use.reserved);
    if (over_sizes) total("reserved_over_sizes", *over_sizes);
  }
  table.notes = {"Most is alive at " + peak_place(p) + ".", "It " + verdict(p)};
  if (over_sizes) {
    table.notes.push_back("Images come in many sizes; after a while the allocator holds " +
                          to_text(*over_sizes) + ".");
  }
  if (m.autotuning > Bytes()) {
    table.notes.push_back("The first iteration, which tries algorithms, needs " + to_text(m.autotuning) +
                          " more.");
  }
  return table;
}

Table memory_savings_table(const Prediction& p, const std::vector<Saving>& all) {
  Table table;
  table.name = "remedies";
  table.preface = {fmt::format("What would help {} on {}, batch {}, {}, {}", p.model->title,
                               p.framework->title, largest_iteration(p).batch, p.gpu->title,
                               memory_text(p.usable_memory(), p.gpu->memory_size)),
                   ""};
  table.columns = {{"remedy", "remedy"},
                   {"what", "what"},
                   {"total", "GiB", true},
                   {"saved", "saved", true},
                   {"iteration_time", "ms", true},
                   {"time_paid", "+-%", true},
                   {"fits", "fits"}};
  for (const Saving& remedy : all) {
    const double paid = remedy.time / all.front().time - 1;
    table.rows.push_back({text_cell(remedy.name), text_cell(remedy.what), gib_cell(remedy.total, 2),
                          gib_cell(all.front().total - remedy.total, 2),
                          number_cell(remedy.time.si(), three_digits(in_unit(remedy.time, "ms"))),
                          signed_bare_percent_cell(paid), flag_cell(remedy.fits)});
  }
  table.notes = {"saved: GiB; +-%: of the iteration's time."};
  return table;
}

Table largest_batch_table(std::span<const LargestBatch> batches) {
  Table table;
  table.name = "largest_batches";
  table.columns = {{"model", "model"},
                   {"variant", "variant"},
                   {"framework", "framework"},
                   {"gpu", ""},
                   {"precision", ""},
                   {"length", ""},
                   {"largest_batch", "largest", true},
                   {"largest_power_of_two", "power of 2", true},
                   {"memory", "GiB", true},
                   {"usable_memory", "of GiB", true},
                   {"memory_size", "", true},
                   {"next_lacks", "next lacks GiB", true}};
  for (const LargestBatch& largest : batches) {
    const Prediction& p = largest.prediction;
    const std::int64_t most = p.model->largest_batch;
    const bool at_most = most > 0 && largest.batch >= most;
    const std::int64_t length = largest_iteration(p).bucket.length;
    table.rows.push_back(
        {text_cell(p.model->name), text_cell(p.scenario.variant), text_cell(p.framework->name),
         text_cell(p.gpu->name), text_cell(p.scenario.precision),
         length == 0 ? Cell{} : count_cell(static_cast<double>(length)),
         count_cell(static_cast<double>(largest.batch)),
         count_cell(static_cast<double>(largest.power_of_two)), bytes_cell(largest.memory.total()),
         bytes_cell(p.usable_memory()), bytes_cell(p.gpu->memory_size),
         at_most ? Cell{} : bytes_cell(largest.next.needed() - p.usable_memory())});
  }
  table.notes = {"Of samples of the longest padded length; 0: not even one fits, GiB is what one needs."};
  return table;
}

}  // namespace tbdsim
