// How fast predictions are. Run build/release/tests/benchmarks/predict_benchmark; items are predictions.
#include <array>

#include <benchmark/benchmark.h>

#include "simulate/prediction.h"
#include "tests/support/cli.h"

namespace tbdsim {
namespace {

// Everything in memory; batch and GPU change at every prediction.
void predict_resnet50(benchmark::State& state) {
  Library library = test::source_library();
  constexpr std::array<const char*, 2> kGpus = {"titanxp", "p4000"};
  Scenario scenario{.model = "resnet50", .framework = "mxnet"};
  for (auto step : state) {
    scenario.batch = scenario.batch % 64 + 1;
    scenario.gpu = kGpus[static_cast<std::size_t>(scenario.batch) % kGpus.size()];
    benchmark::DoNotOptimize(predict(scenario, library).iteration_time());
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(predict_resnet50);

// From the YAML file to kernels and tensors.
void expand_resnet50(benchmark::State& state) {
  Library library = test::source_library();
  for (auto step : state) {
    const ModelFile file = read_model_file(library.catalog().find(Kind::model, "resnet50"));
    const Model model = build_model(file, find_variant(file, "", "mxnet"));
    benchmark::DoNotOptimize(expand_training_step(model, {}, kPrecisions[0]).kernels.size());
  }
}
BENCHMARK(expand_resnet50);

void plan_memory_resnet50(benchmark::State& state) {
  Library library = test::source_library();
  const Variant& variant = find_variant(library.model("resnet50"), "", "mxnet");
  const TrainingStep& training_step =
      library.workload("resnet50", variant, "mxnet", kPrecisions[0]).front().step;
  const Framework& framework = library.framework("mxnet");
  double batch = 1;
  for (auto step : state) {
    batch = batch < 64 ? batch + 1 : 1;
    benchmark::DoNotOptimize(plan_memory(training_step, batch, framework).peak_kernel);
  }
}
BENCHMARK(plan_memory_resnet50);

// From a model's file to its prediction over all 15 lengths: some 350,000 kernels in an iteration.
void predict_deep_speech2_from_its_file(benchmark::State& state) {
  for (auto step : state) {
    Library library = test::source_library();
    const Scenario scenario{.model = "deep_speech2", .framework = "mxnet", .gpu = "titanxp", .batch = 8};
    benchmark::DoNotOptimize(predict(scenario, library).iteration_time());
  }
}
BENCHMARK(predict_deep_speech2_from_its_file)->Unit(benchmark::kMillisecond);

// What `tbd-sim --gpu titanxp --batch 64` does.
void predict_the_suite_from_its_files(benchmark::State& state) {
  for (auto step : state) {
    benchmark::DoNotOptimize(test::run({"--gpu", "titanxp", "--batch", "64"}).out.size());
  }
}
BENCHMARK(predict_the_suite_from_its_files)->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace
}  // namespace tbdsim
