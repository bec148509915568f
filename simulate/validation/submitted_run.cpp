#include "simulate/validation/submitted_run.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "hwspecs/base/error.h"
#include "simulate/job/job_prediction.h"
#include "simulate/job/layout_target.h"
#include "simulate/prediction/predict.h"

namespace tbdsim {
namespace {

constexpr std::int64_t kGpusOfServer = 8;  // that any server is taken to hold

// GPUs that are joined as those of one machine: those of a machine, or of a domain of NVLink over several.
std::int64_t joined_gpus(const Submission& s, const SuiteRules& rules) {
  if (s.gpus % s.nodes != 0)
    throw UsageError(fmt::format("{} GPUs on {} machines: not the same number on each", s.gpus, s.nodes));
  const auto domain = rules.domains.find(s.gpu);
  if (domain == rules.domains.end()) return s.gpus / s.nodes;
  const std::int64_t joined = std::min(domain->second, s.gpus);
  if (s.gpus % joined != 0)
    throw UsageError(fmt::format("{} GPUs in domains of {}: not the same number in each", s.gpus, joined));
  return joined;
}

Cluster cluster_of(const Submission& s, const SuiteRules& rules) {
  const std::int64_t joined = joined_gpus(s, rules);
  Cluster cluster;
  cluster.gpus = static_cast<int>(joined);
  cluster.machines = static_cast<int>(s.gpus / joined);
  cluster.machine = s.machine;
  cluster.network = s.network;
  const bool one_server = cluster.machines == 1 && joined <= kGpusOfServer;
  if (one_server || !s.machine.empty() || !s.network.empty()) return cluster;
  if (const auto machine = rules.machines.find(s.gpu); machine != rules.machines.end()) {
    cluster.machine = machine->second;
  } else if (cluster.machines > 1) {
    cluster.network = rules.network;
  }
  return cluster;
}

// Samples of all GPUs in an iteration.
double samples_of_batch(const Submission& s, const BenchmarkRules& rules) {
  return std::round(static_cast<double>(s.global_batch) / rules.batch_unit);
}

Scenario scenario_of(const Submission& s, const BenchmarkRules& benchmark, const SuiteRules& rules) {
  Cluster cluster = cluster_of(s, rules);
  cluster.method = benchmark.exchange;
  const auto variant = benchmark.variants.find(s.gpu);
  TrainingChoices training;
  training.accumulate = s.accumulate;
  const auto parts = static_cast<double>(s.gpus * s.accumulate);
  return {.model = benchmark.model,
          .framework = benchmark.framework,
          .gpu = s.gpu,
          .batch = std::max<std::int64_t>(1, std::llround(samples_of_batch(s, benchmark) / parts)),
          .variant = variant == benchmark.variants.end() ? benchmark.variant : variant->second,
          .precision = precision_of(rules, benchmark, s.precision, s.gpu),
          .target = benchmark.target,
          .sizes = benchmark.sizes,
          .training = training,
          .cluster = cluster};
}

// True if the GPUs of a machine have room for the data that they keep between them.
bool holds(const Prediction& p, Bytes resident) {
  const Bytes room = p.gpu->usable_memory - p.memory.total();
  return room * static_cast<double>(p.scenario.cluster.gpus) >= resident;
}

SubmittedRun data_parallel_run(const Submission& s, const BenchmarkRules& benchmark, const SuiteRules& rules,
                               const Resolver& resolve) {
  Scenario scenario = scenario_of(s, benchmark, rules);
  Prediction p = predict(scenario, resolve);
  if (benchmark.resident > Bytes(0) && !holds(p, benchmark.resident)) {
    scenario.input.copies = InputCopies::overlapped;
    p = predict(scenario, resolve);
  }
  if (benchmark.spread) {
    Framework tuned = *p.framework;
    tuned.spread = *benchmark.spread;
    p.framework = std::make_shared<const Framework>(std::move(tuned));
  }
  SubmittedRun run;
  run.samples_per_s = p.samples_per_second();
  run.rate_factor = p.interval_factor();
  run.batch = samples_of_batch(s, benchmark);
  run.to = p.convergence;
  run.time = [p = std::move(p), timed = rules.timed, loading = benchmark.loading](
                 const EpochsToTarget& epochs) { return time_of_epochs(p, epochs, timed).total() + loading; };
  return run;
}

// True if the scripts of a round and a sort of GPU are those of this submission.
bool is_of(const ScriptedLayout& layout, const Submission& s) {
  const bool of_round = layout.round.empty() || layout.round == s.round;
  const bool of_gpu = layout.gpu.empty() || layout.gpu == s.gpu;
  return of_round && of_gpu && layout.gpus <= s.gpus && s.gpus <= layout.most;
}

JobRequest job_of(const Submission& s, const BenchmarkRules& benchmark, const SuiteRules& rules) {
  JobRequest request;
  request.model = benchmark.model;
  request.gpu = s.gpu;
  request.machine = s.machine;
  if (const auto machine = rules.machines.find(s.gpu); s.machine.empty() && machine != rules.machines.end())
    request.machine = machine->second;
  request.network = s.network;
  request.precision = precision_of(rules, benchmark, s.precision, s.gpu);
  request.job.gpus = s.gpus;
  request.job.global_batch = s.global_batch;
  for (const auto& [key, value] : benchmark.job) set_job(request, key, value);
  for (const ScriptedLayout& layout : benchmark.layouts) {
    if (!is_of(layout, s)) continue;
    for (const auto& [key, value] : layout.settings) set_job(request, key, value);
  }
  return request;
}

// A decoder that is divided over its GPUs, in the layout of its script or in the fastest one that fits.
SubmittedRun divided_run(const Submission& s, const BenchmarkRules& benchmark, const SuiteRules& rules,
                         SpecCache& specs) {
  const auto job = std::make_shared<const ResolvedJob>(resolve_job(job_of(s, benchmark, rules), specs));
  PieceTable pieces(job->inputs);
  const JobPrediction found = predict_job(*job, pieces);
  if (!job->layout && !found.fits())
    throw UsageError(fmt::format("no layout of {} fits into the memory of {} {}", benchmark.model, s.gpus,
                                 job->gpu->title));
  SubmittedRun run;
  run.batch = static_cast<double>(s.global_batch);
  run.samples_per_s = run.batch / found.layout.step.si();
  run.rate_factor = found.factor();
  if (benchmark.target.empty()) return run;
  run.to = specs.convergence(specs.model(benchmark.model)->name, benchmark.target);
  run.time = [job, layout = found.layout, to = run.to, timed = rules.timed](const EpochsToTarget& epochs) {
    const LayoutTarget target = target_of_layout(layout, job->inputs, *to, epochs.epochs);
    return target.training + target.evaluation + (timed.startup ? target.startup : Seconds(0));
  };
  return run;
}

}  // namespace

SubmittedRun run_of(const Submission& s, const SuiteRules& rules, SpecCache& specs) {
  const BenchmarkRules benchmark = benchmark_in(rules, s.benchmark, s.round);
  return benchmark.is_divided() ? divided_run(s, benchmark, rules, specs)
                                : data_parallel_run(s, benchmark, rules, specs);
}

}  // namespace tbdsim
