#include "simulate/job/resolve_job.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "hwspecs/base/error.h"
#include "hwspecs/base/suggest.h"
#include "simulate/job/captured_job.h"
#include "simulate/layout/decoder_of_graph.h"
#include "simulate/layout/layout_reader.h"
#include "simulate/layout/text_key.h"
#include "simulate/prediction/predict.h"
#include "simulate/prediction/resolve.h"

namespace tbdsim {
namespace {

// Its versions of libraries choose the kernels; other properties of a stack are in simulate/plan/stack.cpp.
constexpr const char* kFrameworkOfLibraries = "pytorch_ngc_2_8";

constexpr auto kUsualMachines =
    std::to_array<std::pair<std::string_view, std::string_view>>({{"a100_sxm_40gb", "dgx_a100"},
                                                                  {"a100_sxm_80gb", "dgx_a100_80gb"},
                                                                  {"h100_sxm", "dgx_h100"},
                                                                  {"h200", "dgx_h200"},
                                                                  {"b200", "dgx_b200"},
                                                                  {"gb200", "gb200_nvl72"},
                                                                  {"b300", "dgx_b300"},
                                                                  {"gb300", "gb300_nvl72"},
                                                                  {"h800_sxm", "dgx_h100"},
                                                                  {"h20", "dgx_h100"},
                                                                  {"h100_sxm_96gb", "dgx_h100"},
                                                                  {"h100_sxm_96gb_500w", "dgx_h100"},
                                                                  {"v100_sxm3_32gb", "dgx2"},
                                                                  {"v100_sxm3_32gb_450w", "dgx2"},
                                                                  {"a800_sxm_80gb", "dgx_a100_80gb"}});

MathType math_of_products(std::string_view precision) {
  if (precision == "fp16") return MathType::fp16;
  if (precision == "fp8") return MathType::fp8;
  if (precision == "nvfp4") return MathType::fp4;
  if (precision == "tf32") return MathType::tf32;
  return MathType::bf16;
}

// The machine that such GPUs usually are in, whatever they are called: of cards with slots, a server with as
// many slots of their bus.
std::string usual_machine(const GpuSpec& spec, const SpecCache& specs) {
  for (const auto& [card, name] : kUsualMachines) {
    if (card == spec.name) return std::string(name);
  }
  if (spec.nvlink && !spec.nvlink->mesh.empty()) return spec.nvlink->mesh;
  const std::string server = "server_" + spec.bus.name;
  if ((!spec.nvlink || spec.nvlink->bridge) && specs.catalog().contains(Kind::machine, server)) return server;
  throw UsageError(fmt::format("--machine is missing: no machine is usual for {}; expected one of {}",
                               spec.name, joined(specs.catalog().names(Kind::machine))));
}

// The decoder that the model is, and the length of its sequences.
DecoderShape decoder_named(const std::string& name, Job& job, SpecCache& specs) {
  constexpr std::int64_t kUsualLength = 2048;
  const std::shared_ptr<const ModelFile> file = specs.model(name);
  const Model model = build_model(*file, find_variant(*file, "", "pytorch"));
  DecoderShape shape = decoder_of(model);
  shape.name = name;
  if (job.sequence == 0) {
    const auto length = model.sizes.find(std::string(kLengthSize));
    job.sequence = length == model.sizes.end() ? kUsualLength
                                               : number_of(kLengthSize, length->second.text, 1, kMostRanks);
  }
  return shape;
}

// The machine with the network that was asked for, and what was assumed of both.
MachineSpec machine_of(const JobRequest& request, const std::string& gpu, ResolvedJob& job,
                       SpecCache& specs) {
  job.machine = request.machine.empty() ? usual_machine(*job.gpu, specs) : request.machine;
  MachineSpec machine = *specs.machine(job.machine);
  if (request.machine.empty())
    job.assumed.push_back({"machine", fmt::format("{}: {}", job.machine, machine.title), "usual for " + gpu});
  // A GPU with fewer NVLinks than the machine's own has those (an H800 in a DGX H100).
  if (machine.nvlink && job.gpu->nvlink)
    machine.nvlink->to_switch = std::min(machine.nvlink->to_switch, job.gpu->nvlink->count);
  if (!request.network.empty()) {
    const std::vector<int> below = machine.networks.empty() ? std::vector<int>{} : machine.networks[0].below;
    machine.networks.assign(1, {network_named(request.network, specs.catalog(), specs.changes()), below});
  }
  const bool joined = request.job.gpus > machine.gpus && !machine.networks.empty();
  if (!joined) return machine;
  const Network& network = machine.networks.front();
  job.network = network.link.title;
  if (request.network.empty())
    job.assumed.push_back({"network",
                           fmt::format("{} x {} for {} GPUs", std::max<std::size_t>(1, network.below.size()),
                                       network.link.name, machine.gpus),
                           "of " + job.machine});
  if (request.oversubscription == 1)
    job.assumed.push_back(
        {"switches", "full bandwidth between any two machines", "no oversubscription given"});
  return machine;
}

// The layouts that have this value; what no search varies is set in all of them, where that is legal.
std::vector<ParallelLayout> with_value(const std::vector<ParallelLayout>& layouts, const std::string& key,
                                       const std::string& value, const DecoderShape& shape, const Job& job) {
  constexpr auto kNotSearched = std::to_array<std::string_view>(
      {"reshard", "prefetch", "uneven", "recompute_modules", "recompute_layers", "schedule"});
  const bool set = std::find(kNotSearched.begin(), kNotSearched.end(), key) != kNotSearched.end();
  std::vector<ParallelLayout> kept;
  for (const ParallelLayout& layout : layouts) {
    ParallelLayout with = layout;
    set_layout(with, key, value);
    if (with == layout || (set && is_legal(with, shape, job))) kept.push_back(with);
  }
  return kept;
}

// "bf16, fp16": the precisions of jobs for which the GPU has arithmetic.
std::string precisions_of(const GpuSpec& gpu) {
  std::vector<std::string> names;
  for (const std::string_view name : job_precisions()) {
    if (gpu.math[index_of(math_of_products(name))]) names.emplace_back(name);
  }
  return names.empty() ? "another GPU" : joined(names);
}

// The decoder that the request names or gives the sizes of, its stack and arithmetic.
void take_decoder(ResolvedJob& r, const JobRequest& request, SpecCache& specs) {
  PlanInputs& in = r.inputs;
  Adapters& adapters = in.job.adapters;
  if (adapters.frozen() && !(adapters.attention || adapters.output || adapters.up || adapters.down))
    adapters.attention = adapters.output = true;
  if (request.model.empty()) {
    in.shape = completed(request.shape);
  } else {
    in.shape = decoder_named(request.model, in.job, specs);
    for (const auto& [key, value] : said_of(request, JobKeyGroup::shape)) set_shape(in.shape, key, value);
    in.shape = completed(in.shape);
  }
  if (in.job.sequence == 0) throw UsageError("seq_len is missing; expected the tokens of a sequence");
  if (in.shape.positions > 0 && in.job.sequence > in.shape.positions)
    throw UsageError(
        fmt::format("seq_len {} is more than the {} positions that {} has learned; expected at "
                    "most as many, or --positions {}",
                    in.job.sequence, in.shape.positions, in.shape.name, in.job.sequence));
  in.stack = stack_named(request.stack);
  for (const auto& [key, value] : said_of(request, JobKeyGroup::stack)) set_stack(in.stack, key, value);
  constexpr double kHopper = 9;
  if (in.stack.attention == AttentionKernel::flash3 && r.gpu->compute_capability != kHopper)
    throw UsageError(
        fmt::format("attention_kernel flash3 on {}; expected flash1, flash2 or cudnn: it is for Hopper alone",
                    r.gpu->title));
  if (!request.precision.empty()) r.precision = request.precision;
  in.precision.math = math_of_products(r.precision);
  const bool narrow = in.precision.math == MathType::fp8 || in.precision.math == MathType::fp4;
  if (!narrow) in.precision.attention = in.precision.math;
  if (request.fp8_attention && !narrow)
    throw UsageError(fmt::format("fp8_attention with precision {}; expected fp8 or nvfp4", r.precision));
  in.precision.fused_attention = request.fp8_attention ? MathType::fp8 : in.precision.attention;
  if (!r.gpu->math[index_of(in.precision.math)])
    throw UsageError(fmt::format("{} has no arithmetic for precision {}; expected {}", r.gpu->title,
                                 r.precision, precisions_of(*r.gpu)));
}

void take_captured(ResolvedJob& r, const JobRequest& request, const std::string& gpu, SpecCache& specs) {
  const Prediction one = predict(resolve(scenario_of_captured(request, gpu), specs));
  take_captured(r.inputs, one);
  r.precision = one.precision->name;
  r.sample = one.model->sample;
  r.of_one_gpu = deviations_of(one);
}

}  // namespace

ResolvedJob resolve_job(const JobRequest& request, SpecCache& specs) {
  ResolvedJob r;
  std::string gpu = request.gpu;
  if (gpu.empty()) {
    if (request.machine.empty())
      throw UsageError("--gpu is missing; expected one of 'tbd-sim list gpus', or --machine");
    gpu = specs.machine(request.machine)->gpu;
    r.assumed.push_back({"GPU", gpu, "of " + request.machine});
  }
  r.gpu = specs.gpu(gpu);
  r.said = request.said;
  PlanInputs& in = r.inputs;
  in.job = request.job;
  if (request.model.empty() && request.shape.layers == 0)
    throw UsageError("the model is missing; expected one, a file, or --table");
  r.calibration = specs.calibration({gpu, r.gpu}, request.profile,
                                    {kFrameworkOfLibraries, specs.framework(kFrameworkOfLibraries)});
  in.calibration = r.calibration.get();
  if (!request.model.empty() && specs.model(request.model)->captured)
    take_captured(r, request, gpu, specs);
  else
    take_decoder(r, request, specs);
  in.fabric = fabric_of(machine_of(request, gpu, r, specs), *r.gpu, in.job.gpus);
  in.fabric.leaf = request.leaf_gpus;
  in.fabric.oversubscription = request.oversubscription;
  if (in.fabric.leaf == 0 && request.oversubscription > 1) in.fabric.leaf = in.fabric.domain;
  r.peak = rate_of(*r.gpu, in.precision.math).peak;
  take_layout(r, request);
  return r;
}

void take_layout(ResolvedJob& r, const JobRequest& request) {
  r.layout.reset();
  r.fixed.clear();
  if (!request.layout) return;
  if (r.captured()) require_whole_replicas(*request.layout, r.inputs.shape.name);
  if (request.search)
    r.fixed = said_of(request, JobKeyGroup::layout);
  else
    r.layout = legal_layout(*request.layout, r.inputs.shape, r.inputs.job);
}

std::string title_of(const ResolvedJob& r) {
  const Job& job = r.inputs.job;
  const std::string adapters =
      job.adapters.frozen() ? fmt::format(", adapters of rank {}", job.adapters.rank) : "";
  const std::string length = r.captured() && job.sequence == 1 ? "" : fmt::format(" of {}", job.sequence);
  return fmt::format("{} on {} {}, {} {}{}{}, {}, {}{}", r.inputs.shape.name, job.gpus, r.gpu->title,
                     job.global_batch, r.captured() ? r.sample : "sequence", job.global_batch == 1 ? "" : "s",
                     length, r.precision, r.inputs.stack.name, adapters);
}

namespace {

// Every layout of the job that is legal and has what is said of it.
std::vector<ParallelLayout> layouts_of_job(const ResolvedJob& r, const Job& job) {
  SearchSpace space = r.captured() ? space_of_captured() : SearchSpace{};
  if (!r.captured()) {
    space.selective = !r.inputs.stack.fused_attention;
    space.operators = !r.inputs.stack.joined_products;  // torch's selective checkpointing
  }
  for (const auto& [key, value] : r.fixed) {
    if (key == "zero") space.zero = static_cast<int>(number_of(key, value, 0, 3));
    if ((key == "recompute" && value == "selective") || key == "recompute_modules") space.selective = true;
    if (key == "recompute" && value == "operators") space.operators = true;
  }
  std::vector<ParallelLayout> layouts = legal_layouts(r.inputs.shape, job, r.inputs.fabric.domain, space);
  for (const auto& [key, value] : r.fixed) layouts = with_value(layouts, key, value, r.inputs.shape, job);
  return layouts;
}

// "GPUs as 64 or 80, or a global batch as 1008 or 1080": the nearest with which there is a layout.
std::string nearest_jobs(const ResolvedJob& r) {
  constexpr std::int64_t kFarthest = 64;
  const Job& job = r.inputs.job;
  std::vector<std::string> gpus, batches;
  const auto add = [&](std::vector<std::string>& to, std::int64_t number, std::int64_t Job::*key) {
    Job other = job;
    other.*key = number;
    const bool legal = number > 0 && !layouts_of_job(r, other).empty();
    if (legal) to.push_back(std::to_string(number));
    return legal;
  };
  for (const int way : {-1, 1}) {
    for (std::int64_t far = 1; far <= kFarthest && !add(gpus, job.gpus + way * far, &Job::gpus); ++far) {
    }
  }
  const std::int64_t below = job.global_batch / job.gpus * job.gpus;
  add(batches, below, &Job::global_batch);
  add(batches, below + job.gpus, &Job::global_batch);
  const auto part = [](const char* what, const std::vector<std::string>& numbers) {
    return numbers.empty() ? "" : what + fmt::format("{}", fmt::join(numbers, " or "));
  };
  const std::string of_gpus = part("GPUs as ", gpus), of_batch = part("a global batch as ", batches);
  if (of_gpus.empty() && of_batch.empty()) {
    if (r.fixed.empty()) return "another number of GPUs or of samples";
    std::vector<std::string> keys;
    for (const auto& [key, value] : r.fixed) keys.push_back(key);
    return fmt::format("other values of {}", fmt::join(keys, ", "));
  }
  return of_gpus + (of_gpus.empty() || of_batch.empty() ? "" : ", or ") + of_batch;
}

}  // namespace

std::vector<ParallelLayout> layouts_of(const ResolvedJob& r) {
  std::vector<ParallelLayout> layouts = layouts_of_job(r, r.inputs.job);
  if (layouts.empty())
    throw UsageError(fmt::format("no layout of {} divides {} GPUs and a global batch of {}{}; expected {}",
                                 r.inputs.shape.name, r.inputs.job.gpus, r.inputs.job.global_batch,
                                 r.fixed.empty() ? "" : " with what is said of it", nearest_jobs(r)));
  return layouts;
}

}  // namespace tbdsim
