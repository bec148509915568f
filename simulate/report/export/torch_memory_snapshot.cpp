#include "simulate/report/export/torch_memory_snapshot.h"

#include <algorithm>
#include <cmath>
#include <ostream>
#include <string>
#include <string_view>

#include "hwspecs/base/quantity_text.h"
#include "simulate/analysis/allocator_replay.h"
#include "simulate/analysis/memory_breakdown.h"
#include "simulate/memory/iteration_replay.h"
#include "simulate/report/export/pickle_writer.h"

namespace tbdsim {
namespace {

constexpr std::string_view kRoleNames[] = {"weights", "weight gradients", "feature map", "gradient map",
                                           "optimizer state and copies"};

class Snapshot {
 public:
  Snapshot(std::ostream& out, const Prediction& p)
      : pickle_(out), p_(p), iteration_(largest_iteration(p)), step_(*iteration_.step), run_(replay(p)) {}

  void write() {
    pickle_.begin_map();
    pickle_.text("segments");
    segments();
    pickle_.text("device_traces");
    pickle_.begin_list();
    trace();
    pickle_.end_list();
    pickle_.text("allocator_settings");
    pickle_.begin_map();
    pickle_.end_map();
    pickle_.end_map();
    pickle_.end();
  }

 private:
  void field(std::string_view key, std::int64_t number) {
    pickle_.text(key);
    pickle_.number(number);
  }
  void field(std::string_view key, std::string_view text) {
    pickle_.text(key);
    pickle_.text(text);
  }

  [[nodiscard]] std::string layer_name(int layer) const {
    return layer < 0 ? "inputs" : step_.layers[static_cast<std::size_t>(layer)].name;
  }
  [[nodiscard]] std::string kernel_name(std::size_t k) const {
    const Kernel& kernel = step_.kernels[k];
    const std::string layer = kernel.layer < 0 ? "all layers" : layer_name(kernel.layer);
    return layer + ", " + std::string(phase_name(kernel)) + ": " + std::string(kernel.op);
  }
  [[nodiscard]] std::string owner_name(int owner) const {
    if (owner == kLibrary) return "workspaces of cuBLAS";
    if (owner < 0) return "workspace of " + kernel_name(static_cast<std::size_t>(-1 - owner));
    const Tensor& tensor = step_.tensors[static_cast<std::size_t>(owner)];
    return std::string(kRoleNames[static_cast<std::size_t>(tensor.role)]) + " of " + layer_name(tensor.layer);
  }

  void frame(std::string_view name, std::int64_t line) {
    pickle_.begin_map();
    field("filename", p_.model->name);
    field("line", line);
    field("name", name);
    pickle_.end_map();
  }
  // Innermost first, as PyTorch has them.
  void frames(int owner, std::int64_t kernel) {
    pickle_.text("frames");
    pickle_.begin_list();
    frame(owner_name(owner), kernel);
    if (kernel >= 0) frame(kernel_name(static_cast<std::size_t>(kernel)), kernel);
    pickle_.end_list();
  }

  void block(const AllocatorBlock& block) {
    pickle_.begin_map();
    field("address", static_cast<std::int64_t>(block.address));
    field("size", static_cast<std::int64_t>(block.size));
    field("requested_size", static_cast<std::int64_t>(block.requested));
    field("state", block.requested > 0 ? "active_allocated" : "inactive");
    if (block.requested > 0) frames(block.owner, -1);
    pickle_.end_map();
  }

  // Blocks of one segment, [first, last).
  template <class Block>
  void segment(Block first, Block last) {
    std::uint64_t total = 0, allocated = 0, requested = 0;
    for (Block block = first; block != last; ++block) {
      total += block->size;
      allocated += block->requested > 0 ? block->size : 0;
      requested += block->requested;
    }
    const bool small =
        std::binary_search(run_.small_segments.begin(), run_.small_segments.end(), first->segment);
    pickle_.begin_map();
    field("device", 0);
    field("address", static_cast<std::int64_t>(first->segment));
    field("total_size", static_cast<std::int64_t>(total));
    field("allocated_size", static_cast<std::int64_t>(allocated));
    field("active_size", static_cast<std::int64_t>(allocated));
    field("requested_size", static_cast<std::int64_t>(requested));
    field("stream", 0);
    field("segment_type", small ? "small" : "large");
    pickle_.text("segment_pool_id");
    pickle_.pair(0, 0);
    pickle_.text("is_expandable");
    pickle_.flag(false);
    pickle_.text("frames");
    pickle_.begin_list();
    pickle_.end_list();
    pickle_.text("blocks");
    pickle_.begin_list();
    for (Block of = first; of != last; ++of) block(*of);
    pickle_.end_list();
    pickle_.end_map();
  }

  void segments() {
    pickle_.begin_list();
    for (auto first = run_.at_peak.begin(); first != run_.at_peak.end();) {
      const auto last = std::find_if(first, run_.at_peak.end(), [&](const AllocatorBlock& block) {
        return block.segment != first->segment;
      });
      segment(first, last);
      first = last;
    }
    pickle_.end_list();
  }

  void event(std::string_view action, const AllocatorEvent& event, std::size_t kernel) {
    const Seconds start = iteration_.timeline.kernels[kernel].start;
    pickle_.begin_map();
    field("action", action);
    field("addr", static_cast<std::int64_t>(event.address));
    field("size", static_cast<std::int64_t>(event.bytes));
    field("stream", 0);
    field("time_us", std::llround(in_unit(start, "us")));
    frames(event.owner, static_cast<std::int64_t>(kernel));
    pickle_.end_map();
  }

  void trace() {
    pickle_.begin_list();
    for (std::size_t i = 0; i < run_.events.size(); ++i) {
      const AllocatorEvent& of = run_.events[i];
      switch (of.action) {
        case AllocatorEvent::Action::segment_alloc:
          event("segment_alloc", of, run_.kernels[i]);
          break;
        case AllocatorEvent::Action::alloc:
          event("alloc", of, run_.kernels[i]);
          break;
        case AllocatorEvent::Action::free:
          event("free_requested", of, run_.kernels[i]);
          event("free_completed", of, run_.kernels[i]);
          break;
      }
    }
    pickle_.end_list();
  }

  PickleWriter pickle_;
  const Prediction& p_;
  const Iteration& iteration_;
  const TrainingStep& step_;
  AllocatorReplay run_;
};

}  // namespace

void write_memory_snapshot(std::ostream& out, const Prediction& prediction) {
  Snapshot(out, prediction).write();
}

}  // namespace tbdsim
