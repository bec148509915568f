// The whole chain for a world small enough to predict by hand (toy_world.h), and its errors.
#include <cmath>
#include <filesystem>
#include <set>

#include <gmock/gmock.h>

#include "hwspecs/base/error.h"
#include "hwspecs/base/spec_change.h"
#include "simulate/prediction/metrics.h"
#include "simulate/prediction/predict.h"
#include "simulate/prediction/repredict.h"
#include "simulate/prediction/uncertainty.h"
#include "simulate/prediction/utilization.h"
#include "tests/simulate/toy_world.h"
#include "tests/support/cli.h"

namespace tbdsim {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

// At batch 10 the kernels take 0.73 + 0.49 + 0.55 + 0.49 + 0.61 + 0.73 + 0.49 = 4.09 us (toy_world.h).
constexpr double kIteration = 4.09e-6;
constexpr double kNone = -1;  // of a metric that needs what the toy world does not have

TEST(Predict, EveryKernelOfTheToyWorld) {
  const test::ToyWorld world;
  SpecCache specs = test::source_specs();
  const Prediction p = predict(world.scenario(10), specs);
  const double totals[] = {0.73e-6, 0.49e-6, 0.55e-6, 0.49e-6, 0.61e-6, 0.73e-6, 0.49e-6};
  const Bound bounds[] = {Bound::compute, Bound::overhead, Bound::compute, Bound::overhead,
                          Bound::memory,  Bound::compute,  Bound::overhead};
  ASSERT_EQ(p.iterations[0].costs.size(), 7u);
  for (std::size_t k = 0; k < 7; ++k) {
    EXPECT_NEAR(p.iterations[0].costs[k].total.si(), totals[k], 1e-12) << k;
    EXPECT_EQ(p.iterations[0].costs[k].bound, bounds[k]) << k;
  }
  EXPECT_NEAR(p.iteration_time().si(), kIteration, 1e-12);
  EXPECT_EQ(p.scenario.variant, "v1");  // filled in
  EXPECT_EQ(p.bound(), Limit::compute);
}

// Metrics of the toy world at batch 10. Work: 240 + 30 + 150 + 30 + 30 + 240 + 48 = 768 flop.
// Memory: weights, gradients and momentum 48 B each. Feature maps are most in kernel 3 (softmax backward):
// data 16 B, relu's output 12 B, probabilities 12 B and relu's gradient 12 B for each sample, 520 B. No
// convolution, so no workspace. 664 B and 1 KiB of context are 1688 B. 1 MiB holds 1024 + 144 + 52 b up to b
// = 20142.
//
// The interval is that of the test IntervalOfTheThroughput below, with all digits.
std::map<std::string, double> expected_metrics() {
  const double of_kinds = 1.46 * 1.46 + 1.10 * 1.10 + 1.04 * 1.04 + 0.49 * 0.49;
  const double of_kernels = 2 * 0.73 * 0.73 + 3 * 0.49 * 0.49 + 0.55 * 0.55 + 0.61 * 0.61;
  const double kernels = kComponents[0] * 0.5 * std::sqrt(0.18 * of_kinds + 0.82 * of_kernels) / 4.09;
  double variance = kernels * kernels;
  for (std::size_t effect = 1; effect < 6; ++effect) variance += kComponents[effect] * kComponents[effect];
  variance += std::pow(kComponents[static_cast<std::size_t>(Effect::network)], 2);  // of no measured class
  const double sd = std::sqrt(variance);
  const double factor = std::exp(kEightyPercent * sd);
  return {{"throughput", 10 / kIteration},
          {"throughput_low", 10 / kIteration / factor},
          {"throughput_high", 10 / kIteration * factor},
          {"iteration_time", kIteration},
          {"sample_throughput", 10 / kIteration},
          {"epoch_time", 500 * kIteration},
          {"epoch_cost", 500 * kIteration * 0.001},
          {"price", kNone},
          {"rent", 0.001},
          {"gpu_utilization", 1},
          {"fp32_utilization", 768 / (500e6 * kIteration)},
          {"nvprof_fp32_level",  // products (full), relus, softmaxes, the update
           (2 * 0.73 + 0.1 * (0.49 + 0.61) + (150 + 30) / 500.0 + 0.23 * 0.49) / 4.09},
          {"tensor_core_utilization", kNone},
          // Products would need 1.7 * 0.48 us, more than they take; the loss 2 * 0.30 us.
          {"fma_pipe_utilization", (2 * 0.73 + 3 * 2 * 0.06 + 0.55 + 2 * 0.096) / 4.09},
          {"fp16_pipe_utilization", 0},
          {"tensor_pipe_utilization", 0},
          {"sfu_pipe_utilization", 30 / (32 * 250.0) / 4.09},  // an exponential for each score
          {"cpu_utilization", 0},
          {"achieved_bandwidth", 1976 / kIteration},
          {"launch_bound_share", 0},
          {"input_bound_share", 0},
          {"efficiency", 1},
          {"exposed_communication", 0},
          {"exchange_bound_share", 0},
          {"flop_utilization", 768 / (500e6 * kIteration)},
          {"mfu", 6 * 120 / (500e6 * kIteration)},      // 120 multiply-adds forward
          {"hfu", (240 + 240) / (500e6 * kIteration)},  // products forward and by the weights
          {"tokens_per_second", kNone},                 // no sequences
          {"achieved_rate", 768 / kIteration},
          {"compute_bound_share", (0.73 + 0.55 + 0.73) / 4.09},
          {"memory_bound_share", 0.61 / 4.09},
          {"overhead_bound_share", 3 * 0.49 / 4.09},
          {"kernel_count", 7},
          {"epochs_to_target", kNone},  // target_runs_test.cpp has them by hand
          {"time_to_target", kNone},
          {"cost_to_target", kNone},
          {"energy_to_target", kNone},
          {"memory_weights", 48},
          {"memory_weight_gradients", 48},
          {"memory_feature_maps", 520},
          {"memory_workspace", 0},
          {"memory_dynamic", 48},
          {"memory_model", 664},
          {"memory_context", 1024},
          {"memory_total", 1688},
          {"largest_batch", 20142}};
}

TEST(Metrics, EveryOneByHand) {
  const test::ToyWorld world;
  SpecCache specs = test::source_specs();
  const Prediction p = predict(world.scenario(10), specs);
  const auto expected = expected_metrics();
  EXPECT_EQ(metrics().size(), expected.size());
  for (const Metric& metric : metrics()) {
    const auto found = expected.find(std::string(metric.name));
    ASSERT_NE(found, expected.end()) << metric.name << " has no value derived by hand; add one";
    ASSERT_EQ(metric.value(p).has_value(), found->second != kNone) << metric.name;
    if (metric.value(p)) {
      EXPECT_NEAR(*metric.value(p), found->second, 1e-9 * found->second + 1e-12) << metric.name;
    }
  }
}

TEST(Metrics, NamesAreUniqueAndEverythingHasAUnit) {
  std::set<std::string_view> names;
  for (const Metric& metric : metrics()) {
    EXPECT_TRUE(names.insert(metric.name).second) << metric.name;
    EXPECT_FALSE(metric.unit.empty() || metric.description.empty()) << metric.name;
  }
}

TEST(Metrics, ThroughputIsInTheModelsOwnUnit) {
  const test::ToyWorld world;
  SpecCache specs = test::source_specs();
  const Prediction p = predict(world.scenario(10), specs);
  EXPECT_EQ(throughput_unit(*p.model), "images/s");
  for (const Metric& metric : metrics()) {
    EXPECT_EQ(unit_of(metric, p), metric.name.starts_with("throughput") ? "images/s" : metric.unit);
  }
}

// ln-spread 0.5 of each kernel: products take 1.46 us of 4.09, relus 1.10, softmaxes 1.04, two of each, the
// update 0.49. 0.18 of the variance are common to a kind, the rest is each kernel's own: 1.46^2 + 1.10^2
// + 1.04^2 + 0.49^2 = 4.66 and, of halves, 2.45: 0.5 sqrt(0.18 x 4.66 + 0.82 x 2.45) / 4.09 = 0.2066. Beside
// 0.146 of it are effects of a model (0.028), a set (0.030), the rest (0.077) and a class of networks without
// runs (0.094): sqrt(0.0302^2 + 0.028^2 + 0.030^2 + 0.077^2 + 0.094^2) = 0.1318. 80 % of a normal
// distribution lie within 1.2816 standard deviations, e^(1.2816 x 0.1318) = 1.1839 either way.
TEST(Predict, IntervalOfTheThroughput) {
  const test::ToyWorld world;
  SpecCache specs = test::source_specs();
  const Prediction p = predict(world.scenario(10), specs);
  EXPECT_NEAR(p.interval_factor(), 1.1839, 0.0001);
  EXPECT_EQ(parts_text(deviations_of(p)), "class of network 13, rest 10, kernels 4, set 4, model 4");
  EXPECT_DOUBLE_EQ(p.throughput_interval().low, p.throughput() / p.interval_factor());
  EXPECT_DOUBLE_EQ(p.throughput_interval().high, p.throughput() * p.interval_factor());
}

// TensorFlow 2 multiplies the times of half-precision convolutions by 1.32; ln 1.32 = 0.28 times the part of
// the iteration that they take, more than a fifth of AlexNet's, may be off on another GPU. fp32 and PyTorch
// have no such factor.
TEST(Predict, AFactorOnHalfConvolutionsWidensTheInterval) {
  SpecCache specs = test::source_specs();
  const auto exposure = [&](const char* framework, const char* precision) {
    const Scenario scenario{.model = "alexnet",
                            .framework = framework,
                            .gpu = "a100_sxm_40gb",
                            .batch = 64,
                            .precision = precision};
    return exposure_of(predict(scenario, specs))[static_cast<std::size_t>(Effect::factor)];
  };
  const double whole = std::log(1.32);
  EXPECT_GT(exposure("tensorflow_2", "amp"), whole / 5);
  EXPECT_LT(exposure("tensorflow_2", "amp"), whole);
  EXPECT_EQ(exposure("tensorflow_2", "fp32"), 0);
  EXPECT_EQ(exposure("pytorch_1_12", "amp"), 0);
}

// Each of the 29 names is that of a file.
TEST(Predict, ClassesOfNetworksAreFilesOfTheCatalogue) {
  int found = 0;
  for (const auto& entry : std::filesystem::directory_iterator(TBDSIM_SOURCE_DIR "/graphs/models"))
    found += is_of_measured_class(entry.path().stem().string()) ? 1 : 0;
  EXPECT_EQ(found, 29);
  EXPECT_FALSE(is_of_measured_class("ssd300"));
}

TEST(Predict, BatchThatDoesNotFitIsPredictedAllTheSame) {
  const test::ToyWorld world;
  SpecCache specs = test::source_specs();
  EXPECT_TRUE(predict(world.scenario(20142), specs).fits);
  const Prediction p = predict(world.scenario(20143), specs);
  EXPECT_FALSE(p.fits);
  EXPECT_GT(p.throughput(), 0);
}

TEST(Predict, ThroughputTimesIterationIsTheBatch) {
  SpecCache specs = test::source_specs();
  for (const std::int64_t batch : {1, 7, 64, 1'000'000'000}) {
    const Prediction p =
        predict({.model = "resnet50", .framework = "mxnet", .gpu = "titanxp", .batch = batch}, specs);
    EXPECT_NEAR(p.throughput() * p.iteration_time().si(), static_cast<double>(batch),
                1e-9 * static_cast<double>(batch));
    const double kernels = p.share(Limit::compute) + p.share(Limit::memory) + p.share(Limit::overhead);
    EXPECT_NEAR(kernels, gpu_utilization(activity_of(p)), 1e-9);
    EXPECT_NEAR(kernels + p.share(Limit::cpu) + p.share(Limit::input), 1, 1e-12);
  }
}

TEST(Predict, VariantOfTheFrameworkUnlessNamed) {
  SpecCache specs = test::source_specs();
  Scenario scenario{.model = "resnet50", .framework = "tensorflow", .gpu = "titanxp", .batch = 32};
  EXPECT_EQ(predict(scenario, specs).scenario.variant, "slim_v2");
  scenario.variant = "v1.5";
  EXPECT_EQ(predict(scenario, specs).scenario.variant, "v1.5");
}

// fp16 on a TITAN Xp is stored as fp16 and computed at the fp32 rate (12.15 Tflop/s = 30 SMs x 256 x 1582
// MHz).
TEST(Predict, PeakOfTheArithmeticUsed) {
  SpecCache specs = test::source_specs();
  const Prediction p = predict(
      {.model = "resnet50", .framework = "pytorch", .gpu = "titanxp", .batch = 8, .precision = "fp16"},
      specs);
  EXPECT_DOUBLE_EQ(p.peak.si(), 30 * 256 * 1582e6);
}

TEST(PredictErrors, NameWhatIsWrong) {
  SpecCache specs = test::source_specs();
  const Scenario good{.model = "resnet50", .framework = "mxnet", .gpu = "titanxp", .batch = 8};
  const auto expect_error = [&](auto change, const std::string& part) {
    Scenario scenario = good;
    change(scenario);
    EXPECT_THAT([&] { (void)predict(scenario, specs); }, ThrowsMessage<UsageError>(HasSubstr(part)));
  };
  expect_error([](Scenario& s) { s.batch = 0; }, "batch 0 is out of range");
  expect_error([](Scenario& s) { s.batch = kMostSamples + 1; }, "out of range");
  expect_error([](Scenario& s) { s.gpu = "titanpx"; }, "did you mean 'titanxp'?");
  expect_error([](Scenario& s) { s.model = "resnet5"; }, "expected one of resnet50, resnet56_cifar");
  expect_error([](Scenario& s) { s.model = "renset50"; }, "did you mean 'resnet50'?");
  expect_error([](Scenario& s) { s.framework = "mxnte"; }, "did you mean 'mxnet'?");
  expect_error([](Scenario& s) { s.precision = "fp61"; }, "did you mean 'fp16'?");
  expect_error([](Scenario& s) { s.precision = "bf16"; }, "has no bf16 arithmetic");
  expect_error([](Scenario& s) { s.profile = "callibrated"; }, "unknown profile 'callibrated'");
  expect_error([](Scenario& s) { s.variant = "v3"; }, "unknown variant 'v3' of resnet50");
}

double epoch_in_iterations(SpecCache& specs, const char* model, const char* framework, std::int64_t batch) {
  const Prediction p =
      predict({.model = model, .framework = framework, .gpu = "titanxp", .batch = batch}, specs);
  return p.epoch_time()->si() / p.iteration_time().si();
}

// An epoch is the samples that are trained on: 1,281,167 images; of WGAN-GP 1,281,149, of which an iteration
// reads five batches; of Faster R-CNN in MXNet the 5011 of VOC 2007 and their mirror images, one at a time;
// of LibriSpeech less than all 28,539 utterances, since those beyond 1600 frames fit no bucket.
TEST(Predict, EpochsOfTheCatalogue) {
  SpecCache specs = test::source_specs();
  EXPECT_NEAR(epoch_in_iterations(specs, "resnet50", "mxnet", 32), 1'281'167 / 32.0, 1e-6);
  EXPECT_NEAR(epoch_in_iterations(specs, "wgan_gp", "tensorflow", 64), 1'281'149 / (5 * 64.0), 1e-6);
  EXPECT_NEAR(epoch_in_iterations(specs, "faster_rcnn", "mxnet", 1), 10'022, 1e-6);
  const double speech = epoch_in_iterations(specs, "deep_speech2", "mxnet", 8) * 8;
  EXPECT_LT(speech, 28'539 * 0.97);
  EXPECT_GT(speech, 28'539 * 0.93);
}

// With N tokens a batch holds fewer samples the longer they are; throughput is over all of them.
TEST(Predict, BatchesOfTokens) {
  SpecCache specs = test::source_specs();
  const Prediction p =
      predict({.model = "transformer", .framework = "tensorflow", .gpu = "titanxp", .tokens = 2048}, specs);
  ASSERT_GT(p.iterations.size(), 5u);
  EXPECT_EQ(p.iterations.front().batch, 240);  // of 8 words
  EXPECT_EQ(p.iterations.back().batch, 9);     // of 215
  double shares = 0;
  double time = 0;
  double samples = 0;
  for (const Iteration& iteration : p.iterations) {
    shares += iteration.share;
    time += iteration.share * iteration.time().si();
    samples += iteration.share * static_cast<double>(iteration.batch);
  }
  EXPECT_NEAR(shares, 1, 1e-12);
  EXPECT_NEAR(p.samples_per_second(), samples / time, 1e-9 * samples / time);
  EXPECT_THAT(
      [&] {
        (void)predict({.model = "resnet50", .framework = "mxnet", .gpu = "titanxp", .tokens = 9}, specs);
      },
      ThrowsMessage<UsageError>(HasSubstr("resnet50 has no sequences to count tokens of")));
}

TEST(Predict, ADataSetOfOtherSamplesIsRefused) {
  SpecCache specs = test::source_specs();
  EXPECT_THAT(
      [&] {
        (void)predict({.model = "resnet50", .framework = "mxnet", .gpu = "titanxp", .dataset = "iwslt15"},
                      specs);
      },
      ThrowsMessage<UsageError>(HasSubstr("data set iwslt15 is of sentence pairs; resnet50 trains images")));
}

// Its code takes one image at a time.
TEST(Predict, NoMoreThanTheLargestBatch) {
  SpecCache specs = test::source_specs();
  const Prediction p =
      predict({.model = "faster_rcnn", .framework = "mxnet", .gpu = "titanxp", .batch = 64}, specs);
  EXPECT_TRUE(p.batch_limited);
  EXPECT_EQ(p.scenario.batch, 1);
  EXPECT_EQ(p.batch_asked, 64);
  EXPECT_EQ(p.iterations[0].batch, 1);
}

// Everything that a prediction refers to is its own: the caches and overlays that read it may be gone.
TEST(Prediction, OutlivesTheCacheItWasMadeFrom) {
  const Scenario scenario{.model = "seq2seq", .framework = "tensorflow", .gpu = "titanxp", .batch = 32};
  const auto made_of_a_cache_that_is_gone = [&] {
    SpecCache specs = test::source_specs();
    SpecCache overlay(specs, {parse_change("gpu.memory_bandwidth=x2")});
    return predict(scenario, overlay);
  };
  const Prediction p = made_of_a_cache_that_is_gone();

  SpecCache specs = test::source_specs();
  SpecCache overlay(specs, {parse_change("gpu.memory_bandwidth=x2")});
  const Prediction expected = predict(scenario, overlay);
  EXPECT_EQ(p.throughput(), expected.throughput());
  EXPECT_EQ(p.largest_batch(), expected.largest_batch());
  EXPECT_EQ(p.epoch_time(), expected.epoch_time());
  EXPECT_EQ(p.model->title, expected.model->title);
  EXPECT_EQ(p.calibration->profile->title, expected.profile->title);
  // Resolved, it can be predicted again, and changed.
  EXPECT_EQ(predict(ResolvedScenario(p)).iteration_time(), expected.iteration_time());
  const auto card = specs.gpu("titanxp");
  EXPECT_EQ(with_rates(p, card).iteration_time(), with_rates(expected, card).iteration_time());
}

// Convolutions that compute in fp32 read NCHW as it is; those on tensor cores need copies.
TEST(Prediction, CopiesAreMadeForTensorCoresOnly) {
  SpecCache specs = test::source_specs();
  const auto copies = [&](const char* gpu) {
    const Prediction p = predict(
        {.model = "resnet50", .framework = "pytorch", .gpu = gpu, .batch = 64, .precision = "tf32"}, specs);
    const Iteration& iteration = p.iterations.front();
    std::size_t made = 0, left_out = 0;
    for (std::size_t k = 0; k < iteration.costs.size(); ++k) {
      if (!iteration.step->kernels[k].tf32_only) continue;
      std::size_t convolution = k + 1;
      while (iteration.step->kernels[convolution].tf32_only) ++convolution;
      EXPECT_EQ(iteration.costs[k].runs(), iteration.costs[convolution].math == MathType::tf32) << k;
      ++(iteration.costs[k].runs() ? made : left_out);
    }
    return std::pair(made, left_out);
  };
  EXPECT_EQ(copies("a100_sxm_80gb").second, 0u);
  EXPECT_GT(copies("a100_sxm_80gb").first, 0u);
  EXPECT_GT(copies("rtx3090").second, 0u);  // TF32 at the rate of fp32
}

// Images that lie in NHWC are read by tensor cores alone.
TEST(Prediction, ChannelsLastStaysOnTensorCores) {
  SpecCache specs = test::source_specs();
  const Prediction p = predict({.model = "resnet50",
                                .framework = "pytorch_channels_last",
                                .gpu = "rtx3090",
                                .batch = 64,
                                .precision = "tf32"},
                               specs);
  const Iteration& iteration = p.iterations.front();
  std::size_t convolutions = 0;
  for (std::size_t k = 0; k < iteration.costs.size(); ++k) {
    const KernelKind kind = iteration.step->kernels[k].kind;
    EXPECT_NE(kind, KernelKind::transpose) << k;
    if (kind != KernelKind::convolution) continue;
    EXPECT_EQ(iteration.costs[k].math, MathType::tf32) << k;
    ++convolutions;
  }
  EXPECT_EQ(convolutions, 53u * 3 - 1);  // the first layer's input needs no gradient
}

}  // namespace
}  // namespace tbdsim
