// How fast predictions are. Run build/release/tests/benchmarks/predict_benchmark; items are predictions.
#include <array>
#include <utility>

#include <benchmark/benchmark.h>

#include "costmodel/residuals/fast/estimate_cache.h"
#include "simulate/prediction/predict.h"
#include "simulate/prediction/repredict.h"
#include "simulate/sweep/point_predictor.h"
#include "simulate/sweep/sweep_spec.h"
#include "tests/support/cli.h"

namespace tbdsim {
namespace {

constexpr std::array kGpus = {"titanxp", "p4000",          "m40",       "gtx1080ti",
                              "t4",      "v100_sxm2_16gb", "p100_pcie", "titanx_maxwell"};

// Time, utilizations and memory.
double figures(const Prediction& p) {
  const Seconds time = p.iteration_time();
  const Timeline& timeline = p.iterations.front().timeline;
  return p.throughput() + p.flops / (p.peak * time) + timeline.gpu_busy / time + timeline.cpu_busy / time +
         p.memory.total().si();
}

// Reads the scenario's files into the cache.
void read_for(Scenario scenario, const char* gpu, SpecCache& specs) {
  scenario.gpu = gpu;
  (void)predict(scenario, specs);
}

// Graph and profiles in memory; batch and GPU change at every prediction, and no point comes twice before all
// 4096 have come.
void predict_resnet50(benchmark::State& state, const char* framework) {
  SpecCache specs = test::source_specs();
  Scenario scenario{.model = "resnet50", .framework = framework};
  for (const char* gpu : kGpus) read_for(scenario, gpu, specs);
  EstimateCache cache;
  std::size_t point = 0;
  for (auto step : state) {
    scenario.batch = static_cast<std::int64_t>(point * 37 / kGpus.size() % 512 + 1);
    scenario.gpu = kGpus[point % kGpus.size()];
    ++point;
    benchmark::DoNotOptimize(figures(predict(scenario, specs, &cache)));
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK_CAPTURE(predict_resnet50, mxnet, "mxnet");
BENCHMARK_CAPTURE(predict_resnet50, cntk, "cntk");
BENCHMARK_CAPTURE(predict_resnet50, pytorch, "pytorch");
BENCHMARK_CAPTURE(predict_resnet50, tensorflow, "tensorflow");

// The same batch on a card whose clock and bandwidth change.
void predict_resnet50_with_other_rates(benchmark::State& state) {
  SpecCache specs = test::source_specs();
  Prediction p = predict({.model = "resnet50", .framework = "mxnet", .gpu = "titanxp", .batch = 32}, specs);
  const GpuSpec& card = *specs.gpu("titanxp");
  GpuSpec changed = card;
  double percent = 0;
  for (auto step : state) {
    percent = percent < 100 ? percent + 1 : 1;
    changed.memory_bandwidth = card.memory_bandwidth * (0.5 + percent / 100);
    MathRate& rate = *changed.math[index_of(MathType::fp32)];
    rate.clock = rate_of(card, MathType::fp32).clock * (1.5 - percent / 100);
    rate.peak = rate_of(card, MathType::fp32).peak * (1.5 - percent / 100);
    p = with_rates(std::move(p), std::make_shared<const GpuSpec>(changed));
    benchmark::DoNotOptimize(figures(p));
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(predict_resnet50_with_other_rates);

// Points of a sweep with their five usual metrics, as `tbd-sim sweep` makes them on one thread.
void sweep(benchmark::State& state, const std::vector<std::pair<std::string, std::string>>& axes) {
  SpecCache specs = test::source_specs();
  SweepOptions options;
  options.axes = {{"model", "resnet50"}, {"framework", "mxnet"}};
  options.axes.insert(options.axes.end(), axes.begin(), axes.end());
  const SweepRun run = sweep_run(options, RowFormat::csv, specs);
  PointPredictor predictor(run.sweep, specs);
  for (std::int64_t first = 0; first < 4; ++first) (void)predictor.at(first);  // of every GPU
  std::int64_t point = 0;
  for (auto step : state) {
    benchmark::DoNotOptimize(row_of(run.sweep, predictor.at(point), run.choosing, run.format).line.size());
    point = (point + 1) % run.end;
  }
  state.SetItemsProcessed(state.iterations());
}

void sweep_over_batches_and_gpus(benchmark::State& state) {
  sweep(state, {{"batch", "1:512"}, {"gpu", "titanxp,p4000,m40,t4"}, {"precision", "fp32"}});
}
BENCHMARK(sweep_over_batches_and_gpus);

void sweep_over_rates(benchmark::State& state) {
  sweep(state, {{"batch", "32"}, {"gpu", "titanxp"}, {"gpu.memory_bandwidth", "100GB/s:1099GB/s:1GB/s"}});
}
BENCHMARK(sweep_over_rates);

// All 15 lengths, graph and profiles in memory.
void predict_deep_speech2(benchmark::State& state) {
  SpecCache specs = test::source_specs();
  Scenario scenario{.model = "deep_speech2", .framework = "mxnet"};
  for (const char* gpu : {kGpus[0], kGpus[1]}) read_for(scenario, gpu, specs);
  std::size_t point = 0;
  for (auto step : state) {
    scenario.batch = static_cast<std::int64_t>(point % 16 + 1);
    scenario.gpu = kGpus[point % 2];
    ++point;
    benchmark::DoNotOptimize(figures(predict(scenario, specs)));
  }
}
BENCHMARK(predict_deep_speech2)->Unit(benchmark::kMillisecond);

// From the YAML file to kernels and tensors.
void expand_resnet50(benchmark::State& state) {
  SpecCache specs = test::source_specs();
  for (auto step : state) {
    const ModelFile file = read_model_file(specs.catalog().find(Kind::model, "resnet50"));
    const Model model = build_model(file, find_variant(file, "", "mxnet"));
    benchmark::DoNotOptimize(expand_training_step(model, {}, kPrecisions[0]).kernels.size());
  }
}
BENCHMARK(expand_resnet50);

// From a model's file to its prediction over all 15 lengths: some 350,000 kernels in an iteration.
void predict_deep_speech2_from_its_file(benchmark::State& state) {
  for (auto step : state) {
    SpecCache specs = test::source_specs();
    const Scenario scenario{.model = "deep_speech2", .framework = "mxnet", .gpu = "titanxp", .batch = 8};
    benchmark::DoNotOptimize(predict(scenario, specs).iteration_time());
  }
}
BENCHMARK(predict_deep_speech2_from_its_file)->Unit(benchmark::kMillisecond);

// `tbd-sim --gpu titanxp --batch 64`.
void predict_the_suite_from_its_files(benchmark::State& state) {
  for (auto step : state) {
    benchmark::DoNotOptimize(test::run({"--gpu", "titanxp", "--batch", "64"}).out.size());
  }
}
BENCHMARK(predict_the_suite_from_its_files)->Unit(benchmark::kMillisecond)->UseRealTime();

// ResNet-50 on so many GPUs, eight in a machine: only the synchronization is simulated again, the GPU itself
// is simulated once, before.
void scale_resnet50(benchmark::State& state) {
  SpecCache specs = test::source_specs();
  Prediction p =
      predict({.model = "resnet50", .framework = "pytorch", .gpu = "v100_sxm2_16gb", .batch = 32}, specs);
  Cluster cluster{.gpus = 8, .machines = static_cast<int>(state.range(0)) / 8, .machine = "dgx1_v100"};
  for (auto step : state) {
    std::optional<SyncPlan> plan = resolve_sync(cluster, *p.gpu, *p.framework, *p.variant, specs);
    p = with_cluster(std::move(p), cluster, std::move(plan));
    benchmark::DoNotOptimize(p.throughput());
  }
}
BENCHMARK(scale_resnet50)->Arg(256)->Arg(100'000);

}  // namespace
}  // namespace tbdsim
