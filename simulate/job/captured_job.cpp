#include "simulate/job/captured_job.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "graphs/captured/captured_step.h"
#include "hwspecs/base/error.h"
#include "simulate/prediction/predict.h"

namespace tbdsim {
namespace {

// A module's path up to its first whole number, "model.layers.7.mlp" -> "model.layers.7"; empty where it has
// none.
std::string block_of(std::string_view path) {
  for (std::size_t from = 0; from < path.size();) {
    const std::size_t end = std::min(path.find('.', from), path.size());
    const std::string_view part = path.substr(from, end - from);
    const bool number =
        std::all_of(part.begin(), part.end(), [](unsigned char c) { return std::isdigit(c); });
    if (number && !part.empty()) return std::string(path.substr(0, end));
    from = end + 1;
  }
  return {};
}

// Parameters of a captured step, their bytes, and how they are divided into blocks.
struct Storage {
  double blocks = 0;
  double parameters = 0, in_blocks = 0;
  double first = 0;  // of the first parameter, where it is in no block: an embedding, a stem
  double parameter_bytes = 0, gradient_bytes = 0, state_bytes = 0;

  [[nodiscard]] double of_each(double bytes) const { return parameters > 0 ? bytes / parameters : 0; }
};

// Elements of each storage: of the largest tensor that it holds.
std::vector<double> elements_of(const CapturedStep& step) {
  std::vector<double> elements(step.storages.size());
  for (const CapturedTensor& tensor : step.tensors) {
    double& most = elements[static_cast<std::size_t>(tensor.storage)];
    most = std::max(most, static_cast<double>(tensor.elements.fixed));
  }
  return elements;
}

Storage storage_of(const CapturedStep& step) {
  Storage sum;
  std::set<std::string> blocks;
  for (const CapturedModule& module : step.modules) blocks.insert(block_of(module.path));
  blocks.erase("");
  const std::vector<double> elements = elements_of(step);
  for (std::size_t i = 0; i < step.storages.size(); ++i) {
    const CapturedStorage& storage = step.storages[i];
    const double bytes = storage.bytes.at(1);
    if (storage.role == StorageRole::gradient) sum.gradient_bytes += bytes;
    if (storage.role == StorageRole::state) sum.state_bytes += bytes;
    if (storage.role != StorageRole::parameter) continue;
    sum.parameter_bytes += bytes;
    const bool in_block = !block_of(storage.name).empty();
    if (sum.parameters == 0 && !in_block) sum.first = elements[i];
    sum.parameters += elements[i];
    if (in_block) sum.in_blocks += elements[i];
  }
  sum.blocks = static_cast<double>(std::max<std::size_t>(1, blocks.size()));
  return sum;
}

// Time of an iteration by phase, the host's included; they sum to the iteration.
struct Phases {
  Seconds forward, backward, update;
};

// One iteration starts before the last kernel of the one before has ended: phases are parts of the time from
// the first to the last kernel of one, in proportion.
Phases phases_of(const Iteration& iteration) {
  Seconds forward, backward, last;
  for (std::size_t k = 0; k < iteration.step->kernels.size(); ++k) {
    const Phase phase = iteration.step->kernels[k].phase;
    last = std::max(last, iteration.timeline.kernels[k].end);
    if (phase != Phase::update) backward = last;
    if (phase == Phase::forward) forward = last;
  }
  const double part = iteration.time() / last;
  return {forward * part, (backward - forward) * part, (last - backward) * part};
}

Prediction with_batch(const Prediction& p, std::int64_t batch) {
  ResolvedScenario scenario = p;
  scenario.scenario.batch = scenario.batch_asked = batch;
  std::fill(scenario.batches.begin(), scenario.batches.end(), batch);
  return predict(std::move(scenario));
}

PieceCosts pieces_of(const Prediction& p, const Storage& storage) {
  const Phases phases = phases_of(p.typical());
  const double each = 1 / storage.blocks;
  PieceCost block;
  block.forward = phases.forward * each;
  block.backward = phases.backward * each;
  const Bytes states(storage.parameter_bytes + storage.gradient_bytes + storage.state_bytes);
  block.kept.fill(std::max(Bytes(0), p.memory.model() - states) * each);
  block.parameters = block.trained = storage.in_blocks * each;
  PieceCosts costs;
  costs.dense = block;
  costs.embedding.parameters = costs.embedding.trained = storage.first;
  costs.head.parameters = costs.head.trained = storage.parameters - storage.in_blocks - storage.first;
  return costs;
}

}  // namespace

Scenario scenario_of_captured(const JobRequest& request, const std::string& gpu) {
  const auto without = [&](bool given, std::string_view key) {
    if (given)
      throw UsageError(
          fmt::format("{} means nothing to {}, a captured step; expected a layout of dp, zero, "
                      "shard, reshard, prefetch and micro_batch",
                      key, request.model));
  };
  without(request.job.sequence > 0, "seq_len");
  without(request.stack != kDefaultStack, "stack");
  for (const JobKeyGroup group : {JobKeyGroup::stack, JobKeyGroup::shape}) {
    for (const auto& [key, value] : said_of(request, group)) without(true, key);
  }
  without(request.job.adapters.frozen(), "lora_rank");
  without(request.fp8_attention, "fp8_attention");
  Scenario scenario;
  scenario.model = request.model;
  scenario.framework = "pytorch";
  scenario.gpu = gpu;
  scenario.precision = request.precision;
  scenario.profile = request.profile;
  return scenario;
}

void take_captured(PlanInputs& in, const Prediction& one) {
  const CapturedStep& captured = *one.model->captured;
  const Storage storage = storage_of(captured);
  DecoderShape& shape = in.shape;
  shape.name = captured.name;
  shape.layers = static_cast<std::int64_t>(storage.blocks);
  shape.hidden = shape.heads = shape.kv_heads = 1;
  in.job.sequence = std::max<std::int64_t>(1, captured.length);
  in.precision.math = in.precision.attention = in.precision.fused_attention =
      one.precision->weight_product_math();
  in.flops_per_token = one.flops.si() / (one.batch() * static_cast<double>(in.job.sequence));

  Stack& stack = in.stack;
  stack = {};
  stack.name = "pytorch";
  stack.title = "PyTorch's DistributedDataParallel, ZeroRedundancyOptimizer and FullyShardedDataParallel";
  // FSDP without a policy of its own gathers and reduces numbers as they are stored.
  stack.parameter_bytes = storage.of_each(storage.parameter_bytes);
  stack.gradient_bytes = stack.reduced_bytes = storage.of_each(storage.gradient_bytes);
  // DistributedDataParallel's bucket_cap_mb.
  stack.bucket_numbers = 25 * kMebi / std::max(1.0, stack.reduced_bytes);
  stack.bucket_of_replica = 0;
  stack.master_bytes = 0;
  stack.moment_bytes = storage.of_each(storage.state_bytes);
  stack.accumulation_traffic = 3 * stack.gradient_bytes;
  // ZeroRedundancyOptimizer (torch/distributed/optim) leaves gradients to DDP, and each rank broadcasts what
  // it has updated.
  stack.reduces_all = true;
  stack.overlaps_gather = false;
  stack.graphs = CudaGraphs::all;  // the passes' times have the host's in them
  stack.iteration = Seconds(0);
  stack.reserved = 1 + one.memory.fragments / one.memory.model();
  stack.context = one.memory.context;
  stack.handles = 0;  // workspaces are among what is captured
  const Seconds update = phases_of(one.typical()).update;
  const double bandwidth = one.gpu->memory_bandwidth.si() * kUpdateBandwidth;
  stack.update_traffic = storage.of_each(update.si() * bandwidth);

  in.pieces = [one, storage](const Share& share) {
    return pieces_of(with_batch(one, share.micro_batch), storage);
  };
}

void require_whole_replicas(const ParallelLayout& layout, const std::string& name) {
  const std::pair<std::string_view, std::int64_t> divided[] = {{"tp", layout.tp}, {"pp", layout.pp},
                                                               {"vp", layout.vp}, {"cp", layout.cp},
                                                               {"ep", layout.ep}, {"etp", layout.etp}};
  for (const auto& [key, ranks] : divided) {
    if (ranks != 1)
      throw UsageError(fmt::format(
          "{} {} of {}, a captured step: its operators do not say what they share; expected {} 1, with "
          "dp, zero (3 for FSDP), shard and micro_batch",
          key, ranks, name, key));
  }
  if (layout.uneven || layout.order != PipelineOrder::one_f_one_b)
    throw UsageError(
        fmt::format("{} of {}, a captured step, which has one stage; expected neither uneven nor a "
                    "schedule",
                    layout.uneven ? "uneven" : "schedule", name));
  if (layout.recompute != Recomputation::none)
    throw UsageError(
        fmt::format("recompute {} of {}, a captured step; expected none, or a capture with "
                    "checkpoints",
                    kRecomputationNames[static_cast<std::size_t>(layout.recompute)], name));
}

SearchSpace space_of_captured() {
  return {
      .most_tp = 1, .most_cp = 1, .most_micro_batch = 1024, .most_stages = 1, .full = false, .least_zero = 0};
}

}  // namespace tbdsim
