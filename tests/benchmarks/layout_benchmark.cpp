// How fast layouts of a cluster are predicted on one core. Run
// build/release/tests/benchmarks/layout_benchmark; items are layouts.
#include <benchmark/benchmark.h>

#include "simulate/job/resolve_job.h"
#include "simulate/plan/search.h"
#include "tests/support/cli.h"

namespace tbdsim {
namespace {

ResolvedJob llama3_70b(const char* gpus, const char* batch, SpecCache& specs) {
  JobRequest request;
  set_job(request, "model", "llama3_70b");
  set_job(request, "gpu", "h100_sxm");
  set_job(request, "gpus", gpus);
  set_job(request, "global_batch", batch);
  set_job(request, "seq_len", "8192");
  return resolve_job(request, specs);
}

// All legal layouts of 512 GPUs, with the kernels of all ways to share a block.
void search_llama3_70b(benchmark::State& state) {
  SpecCache specs = test::source_specs();
  const ResolvedJob job = llama3_70b("512", "2048", specs);
  const std::vector<ParallelLayout> layouts = layouts_of(job);
  for (auto step : state)
    benchmark::DoNotOptimize(best_layouts(layouts, job.inputs, job.peak, job.usable(), 10).fitting);
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(layouts.size()));
}
BENCHMARK(search_llama3_70b);

// One layout of 98,304 GPUs with its kernels.
void one_layout_of_many_gpus(benchmark::State& state) {
  SpecCache specs = test::source_specs();
  const ResolvedJob job = llama3_70b("98304", "98304", specs);
  const ParallelLayout layout = legal_layout({.tp = 8, .pp = 4, .zero = 1}, job.inputs.shape, job.inputs.job);
  for (auto step : state) {
    PieceTable pieces(job.inputs);
    benchmark::DoNotOptimize(predict_layout(layout, pieces, job.peak).step);
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(one_layout_of_many_gpus);

}  // namespace
}  // namespace tbdsim
