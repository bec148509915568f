// The time that memory adds to a prediction in a sweep. Run build/release/tests/benchmarks/memory_benchmark
// and compare with predict_benchmark; items are plans.
#include <benchmark/benchmark.h>

#include "simulate/prediction/predict.h"
#include "tests/support/cli.h"

namespace tbdsim {
namespace {

// The batch changes at every plan; its costs are those of one batch.
void plan_resnet50(benchmark::State& state, const char* framework) {
  SpecCache specs = test::source_specs();
  const Prediction p =
      predict({.model = "resnet50", .framework = framework, .gpu = "titanxp", .batch = 32}, specs);
  const Iteration& iteration = p.iterations.front();
  double batch = 1;
  for (auto step : state) {
    batch = batch < 512 ? batch + 1 : 1;
    benchmark::DoNotOptimize(
        plan_memory(*iteration.memory, *iteration.step, iteration.costs, batch, *p.framework).total());
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK_CAPTURE(plan_resnet50, planned_ahead, "mxnet");
BENCHMARK_CAPTURE(plan_resnet50, as_needed, "tensorflow");

}  // namespace
}  // namespace tbdsim
