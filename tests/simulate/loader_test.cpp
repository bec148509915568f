// Where samples come from: synthetic or real input, its workers and their time, by hand in the toy world
// (toy_world.h: an iteration of the slow framework takes 12.24 us, of which the GPU works 4.09).
#include "simulate/prediction/loader.h"

#include <gmock/gmock.h>

#include "hwspecs/base/error.h"
#include "simulate/analysis/sensitivity.h"
#include "simulate/analysis/whatif.h"
#include "simulate/prediction/predict.h"
#include "simulate/prediction/utilization.h"
#include "simulate/report/explanation.h"
#include "simulate/report/prediction_notes.h"
#include "tests/simulate/toy_world.h"
#include "tests/support/cli.h"

namespace tbdsim {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::ThrowsMessage;

constexpr double kBusy = 4.09e-6;   // s, of the GPU
constexpr double kSlow = 12.24e-6;  // s, an iteration of the slow framework
constexpr double kTolerance = 1e-15;
constexpr Seconds kMicrosecond(1e-6);

// Predictions of ten images whose decoding takes one worker 10 us, as the data set says.
struct Toy {
  test::ToyWorld world{};
  SpecCache specs = test::source_specs();

  // slow.yaml decodes with two threads, framework.yaml makes its samples up.
  Prediction slow(const SampleInput& input) { return of("slow.yaml", input); }
  Prediction made_up(const SampleInput& input) { return of("framework.yaml", input); }
  Prediction of(const std::string& framework, const SampleInput& input) {
    Scenario scenario = world.slow_scenario(10, world.dataset_decoded_in("10 us"));
    scenario.framework = world.path(framework);
    scenario.input = input;
    return predict(scenario, specs);
  }
};

double time_of(const Prediction& p) { return p.iteration_time().si(); }

TEST(Loader, WorkersOfAMachineServeAllItsGpus) {
  Loader loader{.sample_time = kMicrosecond, .workers = 8, .is_shared = true};
  EXPECT_DOUBLE_EQ(loader.threads(1, 0), 8);
  EXPECT_DOUBLE_EQ(loader.threads(4, 0), 2);
  EXPECT_DOUBLE_EQ(loader.threads(1, 6), 6);      // of six cores
  EXPECT_DOUBLE_EQ(loader.threads(4, 1.5), 1.5);  // the same six cores
  loader.is_shared = false;
  EXPECT_DOUBLE_EQ(loader.threads(4, 0), 8);
  EXPECT_DOUBLE_EQ(loader.threads(4, 1.5), 1.5);
  loader.workers = 0;  // a thread for each GPU
  EXPECT_TRUE(loader.in_loop());
  EXPECT_DOUBLE_EQ(loader.threads(4, 1.5), 1);
  EXPECT_DOUBLE_EQ(loader.threads(4, 0.5), 0.5);
}

// Ten images of 10 us: 50 us of two threads, 100 us of one, 10 us of ten, which hide behind the training.
TEST(Loader, WorkersInsteadOfTheFrameworks) {
  Toy toy;
  EXPECT_NEAR(time_of(toy.slow({})), 50e-6, kTolerance);
  EXPECT_NEAR(time_of(toy.slow({.source = "real"})), 50e-6, kTolerance);
  EXPECT_NEAR(time_of(toy.slow({.workers = 1})), 100e-6, kTolerance);
  EXPECT_NEAR(time_of(toy.slow({.workers = 10})), kSlow, kTolerance);
  EXPECT_NEAR(time_of(toy.slow({.sample_time = kMicrosecond * 4.0})), 20e-6, kTolerance);
  EXPECT_NEAR(time_of(toy.slow({.workers = 1, .sample_time = kMicrosecond * 3.0})), 30e-6, kTolerance);
}

// Decoding takes 50 us, training 12.24: with samples at no cost 10 / 12.24 us remain, and a per cent of the
// decoding's time is one of the throughput's.
TEST(Loader, WhatWouldHelpNamesTheSamples) {
  Toy toy;
  const Prediction p = toy.slow({});
  const std::vector<UpperBound> bounds = upper_bounds(p);
  ASSERT_EQ(bounds.size(), 5u);
  EXPECT_EQ(bounds[3].name, "samples at no cost");
  EXPECT_NEAR(bounds[3].throughput, 10 / kSlow, 1);
  EXPECT_EQ(bounds[4].name, "all four");
  EXPECT_NEAR(bounds[0].throughput, 10 / 50e-6, 1e-3);
  const Sensitivity most = sensitivities(p.scenario, p, toy.specs).front();
  EXPECT_EQ(most.key, "dataset.decode_time");
  EXPECT_NEAR(most.elasticity, -1, 1e-6);
}

// A data set that was named, and whose samples are not decoded.
TEST(Loader, SaysThatNoSampleIsDecoded) {
  Toy toy;
  const Prediction p = toy.made_up({});
  const std::vector<std::string> notes = prediction_notes(std::span(&p, 1), 200);
  EXPECT_THAT(notes, testing::Contains(HasSubstr("made up on the GPU; --input real decodes those of")));
  const Prediction decoded = toy.slow({});
  EXPECT_THAT(prediction_notes(std::span(&decoded, 1), 200),
              testing::Not(testing::Contains(HasSubstr("made up on the GPU"))));
}

TEST(Loader, SyntheticInputIsNotDecoded) {
  Toy toy;
  const Prediction p = toy.slow({.source = "synthetic"});
  EXPECT_NEAR(time_of(p), kSlow, kTolerance);
  EXPECT_NEAR(cpu_utilization(times_of(p)), 11e-6 / (28 * kSlow), 1e-9);
}

// A framework whose runs make samples up has a loader of four threads where real input is asked for.
TEST(Loader, RealInputOfAnyFramework) {
  Toy toy;
  EXPECT_NEAR(time_of(toy.made_up({})), kBusy, kTolerance);
  EXPECT_NEAR(time_of(toy.made_up({.source = "real"})), 25e-6, kTolerance);
  EXPECT_NEAR(time_of(toy.made_up({.sample_time = kMicrosecond * 8.0})), 20e-6, kTolerance);
  EXPECT_NEAR(time_of(toy.made_up({.workers = 5})), 20e-6, kTolerance);
}

// Decoding and training take turns: 12.24 + 10 * 2 us, of which the host works 11 + 20 us.
TEST(Loader, NoWorkersDecodeInTheTrainingLoop) {
  Toy toy;
  const Prediction p = toy.slow({.workers = 0, .sample_time = kMicrosecond * 2.0});
  const double time = kSlow + 20e-6;
  EXPECT_NEAR(time_of(p), time, kTolerance);
  EXPECT_NEAR(p.share(Limit::input), 20e-6 / time, 1e-9);
  EXPECT_NEAR(p.share(Limit::cpu), (kSlow - kBusy) / time, 1e-9);
  EXPECT_EQ(p.bound(), Limit::input);
  EXPECT_NEAR(gpu_utilization(times_of(p)), kBusy / time, 1e-9);
  EXPECT_NEAR(cpu_utilization(times_of(p)), (11e-6 + 20e-6) / (28 * time), 1e-9);
}

// The suite's NCF draws each sample in Python, in the training loop: the data set's 7.5 us for each of 2048.
TEST(Loader, NcfDrawsItsSamplesInTheTrainingLoop) {
  SpecCache specs = test::source_specs();
  Scenario scenario{.model = "ncf", .framework = "pytorch_0_4", .gpu = "rtx2080ti", .batch = 2048};
  scenario.variant = "suite";
  const double made_up = time_of(predict(scenario, specs));
  scenario.input = {.source = "real", .workers = 0};
  const Prediction drawn = predict(scenario, specs);
  EXPECT_NEAR(time_of(drawn), made_up + 2048 * 7.5e-6, 1e-9);
  EXPECT_EQ(drawn.bound(), Limit::input);
}

// Ten images of 1 kB at 100 MB/s: 100 us, beside the training or in its loop; eight GPUs share the storage of
// a machine.
TEST(Loader, StorageIsReadNoFaster) {
  Toy toy;
  const BytesPerSecond storage(100e6);
  EXPECT_NEAR(time_of(toy.slow({.sample_bytes = Bytes(1000), .storage = storage})), 100e-6, kTolerance);
  EXPECT_NEAR(time_of(toy.slow({.sample_bytes = Bytes(100), .storage = storage})), 50e-6, kTolerance)
      << "decoding takes longer";
  EXPECT_NEAR(time_of(toy.slow({.workers = 0, .sample_bytes = Bytes(1000), .storage = storage})),
              kSlow + 100e-6 + 100e-6, kTolerance);
  EXPECT_THAT([&] { (void)toy.slow({.storage = storage}); },
              ThrowsMessage<UsageError>(HasSubstr("expected an input_bytes, as 110 kB")));
}

// Copies between two iterations lengthen each, overlapped ones hide behind it, from pageable memory they take
// longer.
TEST(Loader, CopiesOfBatches) {
  Toy toy;
  const auto with = [&](InputCopies copies) {
    return toy.slow({.workers = 10, .sample_time = kMicrosecond, .copies = copies});
  };
  const Prediction pinned = with(InputCopies::pinned);
  const double copy = pinned.iterations[0].input_copy.si();
  EXPECT_GT(copy, 0);
  EXPECT_NEAR(time_of(with(InputCopies::uncounted)), kSlow, kTolerance);
  EXPECT_NEAR(time_of(pinned), kSlow + copy, kTolerance);
  EXPECT_NEAR(time_of(with(InputCopies::pageable)), kSlow + copy / 0.6, kTolerance);
  EXPECT_NEAR(time_of(with(InputCopies::overlapped)), std::max(kSlow, copy), kTolerance);
}

TEST(Loader, CoresOfTheHost) {
  Toy toy;
  EXPECT_NEAR(time_of(toy.slow({.workers = 10, .cores = 4})), 25e-6, kTolerance);
  const std::string told =
      test::run({"whatif", "resnet50", "--framework", "mxnet", "--gpu", "titanxp", "--batch", "32", "--set",
                 "host.cores=1", "--set", "input=real", "--format", "csv"})
          .out;
  EXPECT_THAT(told, HasSubstr("input_bound_share"));
}

TEST(Loader, ExplanationSaysWhatTheInputTakes) {
  Toy toy;
  const auto text = [](const Prediction& p) {
    std::string all;
    for (const std::string& line : explanation(p)) all += line + ' ';
    return all;
  };
  EXPECT_THAT(text(toy.slow({.workers = 1})),
              HasSubstr("Samples come no faster: 100 us to decode a batch, 10 us each, 1 at a time."));
  EXPECT_THAT(text(toy.slow({.workers = 0})),
              HasSubstr("The training loop decodes the samples itself: 100 us for a batch, 10 us each."));
  EXPECT_THAT(text(toy.slow({.workers = 10})), Not(HasSubstr("Samples come")));
}

TEST(Loader, ContradictionsAndUnknownTimes) {
  Toy toy;
  EXPECT_THAT([&] { (void)toy.slow({.source = "synthetic", .workers = 2}); },
              ThrowsMessage<UsageError>(AllOf(HasSubstr("input_workers"), HasSubstr("expected input real"))));
  EXPECT_THAT([&] { (void)toy.slow({.source = "synthetic", .sample_time = kMicrosecond}); },
              ThrowsMessage<UsageError>(AllOf(HasSubstr("input_time"), HasSubstr("expected input real"))));
  Scenario scenario = toy.world.slow_scenario(10);  // of the data set without a time
  EXPECT_NEAR(predict(scenario, toy.specs).iteration_time().si(), kSlow, kTolerance);
  for (const SampleInput& input : {SampleInput{.source = "real"}, SampleInput{.workers = 0}}) {
    scenario.input = input;
    EXPECT_THAT(
        [&] { (void)predict(scenario, toy.specs); },
        ThrowsMessage<UsageError>(HasSubstr("of dataset is unknown; expected an input_time, as 4 ms")));
  }
  scenario.input.sample_time = kMicrosecond;
  EXPECT_NEAR(predict(scenario, toy.specs).iteration_time().si(), kSlow + 10e-6, kTolerance);
}

// A P4000 of the TBD cluster has 28 cores, four of them 7 each. 16 images of 2.8 s: 44.8 s of one core.
TEST(Loader, NoMoreWorkersThanTheMachineHasCores) {
  const std::vector<std::string> common{"--input-time", "2800ms", "--machine",   "tbd_p4000",
                                        "--batch",      "16",     "--framework", "mxnet"};
  const auto with = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), common.begin(), common.end());
    const test::CliResult result = test::run(arguments);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return result.out;
  };
  const std::string rows = with({"sweep", "--model", "resnet50", "--gpus", "1,4", "--input-workers", "8,56",
                                 "--metrics", "iteration_time"});
  EXPECT_THAT(rows, HasSubstr("16,8,2800ms,tbd_p4000,1,5.6,ok\n"));   // 44.8 / 8
  EXPECT_THAT(rows, HasSubstr("16,8,2800ms,tbd_p4000,4,22.4,ok\n"));  // 44.8 / 2
  EXPECT_THAT(rows, HasSubstr("16,56,2800ms,tbd_p4000,1,1.6,ok\n"));  // 44.8 / 28
  EXPECT_THAT(rows, HasSubstr("16,56,2800ms,tbd_p4000,4,6.4,ok\n"));  // 44.8 / 7
  const std::string scaled =
      with({"scaling", "resnet50", "--gpus", "1,4", "--input-workers", "56", "--format", "json"});
  EXPECT_THAT(scaled, AllOf(HasSubstr("\"iteration_time\": 1.6"), HasSubstr("\"iteration_time\": 6.4")));
}

// OpenMP's threads, one for each core: nothing waits for CNTK's images. One thread decodes 250 a second.
TEST(Loader, CntkDecodesOnEveryCore) {
  SpecCache specs = test::source_specs();
  Scenario scenario{
      .model = "resnet50", .framework = "cntk", .gpu = "v100_sxm2_16gb", .batch = 128, .precision = "fp16"};
  const Prediction p = predict(scenario, specs);
  EXPECT_EQ(p.share(Limit::input), 0);
  EXPECT_GT(p.throughput(), 250);
  scenario.input.workers = 1;
  EXPECT_NEAR(predict(scenario, specs).throughput(), 250, 1e-9);
}

TEST(Loader, KeysAreChecked) {
  const auto error = [](const std::string& option, const std::string& value) {
    return test::run({"--model", "resnet50", "--framework", "mxnet", "--gpu", "titanxp", "--batch", "16",
                      option, value})
        .err;
  };
  EXPECT_THAT(error("--input", "sinthetic"),
              HasSubstr("input: 'sinthetic'; expected synthetic, real; did you mean 'synthetic'?"));
  EXPECT_THAT(error("--input-workers", "-1"),
              HasSubstr("input_workers: '-1' is no whole number from 0 (the training loop decodes) to 1024"));
  EXPECT_THAT(error("--input-workers", "1025"), HasSubstr("'1025' is no whole number"));
  EXPECT_THAT(error("--input-time", "4"), AllOf(HasSubstr("input_time: "), HasSubstr("ms")));
  EXPECT_THAT(error("--input-time", "0 ms"), HasSubstr("input_time: '0 ms'; expected a time above 0"));
  EXPECT_THAT(error("--input-time", "4 GB"), HasSubstr("input_time: "));
}

TEST(Loader, TablesSayWhatIsAssumed) {
  const std::vector<std::string> asked{"--model",         "resnet50", "--framework",  "mxnet",
                                       "--gpu",           "titanxp",  "--batch",      "16",
                                       "--input-workers", "2",        "--input-time", "16ms"};
  const test::CliResult table = test::run(asked);
  EXPECT_THAT(table.out, HasSubstr("Samples, on mxnet: decoded by 2 workers of a machine, 16 ms each.\n"));
  EXPECT_THAT(table.out, Not(HasSubstr("decode_time of imagenet")));
  std::vector<std::string> as_json = asked;
  as_json.insert(as_json.end(), {"--format", "json"});
  EXPECT_THAT(test::run(as_json).out, AllOf(HasSubstr("\"workers\": 2"), HasSubstr("\"value\": 0.016")));
  const test::CliResult whatif = test::run({"whatif", "resnet50", "--framework", "pytorch", "--gpu",
                                            "titanxp", "--batch", "16", "--set", "input_workers=0"});
  EXPECT_THAT(whatif.out, HasSubstr("GPU waits for samples"));
}

}  // namespace
}  // namespace tbdsim
