// What-ifs of several GPUs and of software: every change of the catalogue, alone and together.
#include <algorithm>

#include <gmock/gmock.h>

#include "graphs/rewrites/fuse_batch_norms.h"
#include "hwspecs/base/error.h"
#include "simulate/analysis/memory_savings.h"
#include "simulate/analysis/presets.h"
#include "simulate/analysis/sensitivity.h"
#include "simulate/analysis/whatif.h"
#include "simulate/prediction/predict.h"
#include "tests/hwspecs/message_of.h"
#include "tests/simulate/toy_world.h"
#include "tests/support/cli.h"

namespace tbdsim {
namespace {

using testing::HasSubstr;

const Scenario kResNet{.model = "resnet50", .framework = "mxnet", .gpu = "t4", .batch = 32};

SpecChanges named(std::initializer_list<const char*> names, SpecCache& specs) {
  SpecChanges all;
  for (const char* name : names) {
    for (const SpecChange& change : read_preset(specs.catalog().find(Kind::change, name)).set)
      all.push_back(change);
  }
  return all;
}

Scenario on_two_machines(Scenario scenario) {
  scenario.cluster = {.gpus = 2, .machines = 2, .network = "10 Gbit/s"};
  return scenario;
}

Saving remedy(const Prediction& p, const std::string& name) {
  for (const Saving& one : remedies(p)) {
    if (one.name == name) return one;
  }
  throw UsageError("no remedy " + name);
}

// Each preset, on a model and framework that it affects, changes time or memory in the direction it should.
TEST(Presets, EachChangesWhatItSays) {
  SpecCache specs = test::source_specs();
  const Scenario unrolled{.model = "seq2seq", .framework = "tensorflow", .gpu = "t4", .batch = 64};
  const auto time = [&](const Scenario& scenario, const char* name) {
    return predict_changed(scenario, name == nullptr ? SpecChanges{} : named({name}, specs), specs)
        .iteration_time();
  };
  for (const char* name : {"mixed_precision", "cuda_graphs", "fused_norms"})
    EXPECT_LT(time(kResNet, name), time(kResNet, nullptr)) << name;
  EXPECT_LT(time(unrolled, "fused_rnn"), time(unrolled, nullptr));
  EXPECT_LT(
      time({.model = "transformer", .framework = "tensorflow", .gpu = "t4", .batch = 8}, "fused_layer_norms"),
      time({.model = "transformer", .framework = "tensorflow", .gpu = "t4", .batch = 8}, nullptr));
  for (const char* name : {"half_gradients", "gradient_compression"})
    EXPECT_LT(time(on_two_machines(kResNet), name), time(on_two_machines(kResNet), nullptr)) << name;
  for (const char* name : {"recompute", "offload", "half_maps"})
    EXPECT_GT(time(kResNet, name), time(kResNet, nullptr)) << name;
}

TEST(Presets, AllOfTheCatalogueAreReadAndCompose) {
  SpecCache specs = test::source_specs();
  SpecChanges all;
  for (const std::string& name : specs.catalog().names(Kind::change)) {
    const Preset changes = read_preset(specs.catalog().find(Kind::change, name));
    EXPECT_FALSE(changes.title.empty()) << name;
    if (name == "recompute_attention") continue;  // ResNet has none; below
    all.insert(all.end(), changes.set.begin(), changes.set.end());
    EXPECT_GT(predict_changed(on_two_machines(kResNet), all, specs).throughput(), 0) << name;
  }
  const Scenario gpt2{.model = "gpt2", .framework = "pytorch_hf_eager", .gpu = "t4", .batch = 1};
  EXPECT_GT(predict_changed(gpt2, named({"recompute_attention"}, specs), specs).iteration_time(),
            predict(gpt2, specs).iteration_time());
  EXPECT_THAT(test::run({"whatif", "resnet50", "--framework", "mxnet", "--gpu", "t4", "--batch", "8",
                         "--changes", "recomputed"})
                  .err,
              HasSubstr("did you mean 'recompute'?"));
}

// A remedy of `memory --remedies` and the same as a change of the framework are one thing.
TEST(WhatIfMemory, ChangesAreTheRemedies) {
  SpecCache specs = test::source_specs();
  const Prediction before = predict(kResNet, specs);
  for (const char* name : {"recompute", "offload", "half_maps"}) {
    const Prediction after = predict_changed(kResNet, named({name}, specs), specs);
    const Saving same = remedy(before, name);
    EXPECT_NEAR(after.memory.total().si(), same.total.si(), 1) << name;
    EXPECT_NEAR(after.iteration_time().si(), same.time.si(), 1e-9) << name;
    EXPECT_LT(same.total, before.memory.total()) << name;
  }
}

// Other rates run the copies again: twice the bus halves them.
TEST(WhatIfMemory, OffloadedMapsWaitForTheBus) {
  SpecCache specs = test::source_specs();
  SpecChanges changes = named({"offload"}, specs);
  const auto copies = [&] { return predict_changed(kResNet, changes, specs).iterations.front().copies; };
  changes.push_back(parse_change("link.pcie3.bandwidth=3 GB/s"));
  const Seconds slow = copies();
  changes.back() = parse_change("link.pcie3.bandwidth=6 GB/s");
  EXPECT_GT(slow, copies());
  EXPECT_GT(copies(), Seconds(0));
}

TEST(WhatIfMemory, RefusesToRecomputeWhatAlternates) {
  SpecCache specs = test::source_specs();
  const Scenario wgan{.model = "wgan_gp", .framework = "tensorflow", .gpu = "t4", .batch = 8};
  EXPECT_THAT(
      test::message_of<UsageError>([&] { (void)predict_changed(wgan, named({"recompute"}, specs), specs); }),
      HasSubstr("nothing to recompute"));
}

// ResNet-50 has 53 norms: 33 before a ReLU alone, 16 whose sum is with what is there already or, in the first
// block of each stage, with the shortcut's norm, which runs last; 4 stay.
TEST(NormFusion, KernelsOfResNet) {
  SpecCache specs = test::source_specs();
  const Scenario scenario{.model = "resnet50", .framework = "pytorch", .gpu = "t4", .batch = 32};
  const Prediction before = predict(scenario, specs);
  const TrainingStep& step = *before.iterations.front().step;
  const TrainingStep fused = with_fused_norms(step);
  const auto count = [](const TrainingStep& of, std::string_view op) {
    return std::count_if(of.kernels.begin(), of.kernels.end(),
                         [&](const Kernel& kernel) { return kernel.op == op; });
  };
  EXPECT_EQ(count(fused, "relu"), 0);
  EXPECT_EQ(count(fused, "add"), count(step, "add") - 16);
  EXPECT_EQ(count(fused, "batch_norm_add_relu"), 16);
  EXPECT_EQ(count(fused, "batch_norm_relu"), 33 + 49);
  EXPECT_EQ(count(fused, "batch_norm"), 2 * 4);
  for (const Tensor& tensor : fused.tensors) {
    EXPECT_LE(tensor.first_use, tensor.last_use);
    EXPECT_LT(tensor.last_use, static_cast<int>(fused.kernels.size()));
  }
  for (std::size_t k = 0; k < fused.kernels.size(); ++k)
    EXPECT_LT(fused.kernels[k].duplicate_of, static_cast<int>(k));
}

// NVIDIA's MXNet container fuses in half precision alone, where images are NHWC and are not transposed.
TEST(NormFusion, WhereMapsAreOfHalfPrecision) {
  SpecCache specs = test::source_specs();
  const auto ops = [&](const char* precision, std::string_view op) {
    const Prediction p = predict({.model = "resnet50",
                                  .framework = "mxnet_ngc",
                                  .gpu = "v100_sxm2_16gb",
                                  .batch = 32,
                                  .precision = precision},
                                 specs);
    const auto& kernels = p.iterations.front().step->kernels;
    return std::count_if(kernels.begin(), kernels.end(),
                         [&](const Kernel& kernel) { return kernel.op == op; });
  };
  EXPECT_EQ(ops("fp32", "batch_norm_relu"), 0);
  EXPECT_GT(ops("amp", "batch_norm_relu"), 0);
  EXPECT_EQ(ops("amp", "nhwc_nchw"), 0);
}

// Norms by constant statistics are fused alike: of ResNet-50's 53, 33 with a ReLU and 16 with a sum and a
// ReLU.
TEST(NormFusion, NormsByConstants) {
  SpecCache specs = test::source_specs();
  const Prediction p = predict({.model = "mask_rcnn_fpn",
                                .framework = "pytorch_mlperf",
                                .gpu = "v100_sxm2_16gb",
                                .batch = 2,
                                .variant = "mlperf",
                                .precision = "amp"},
                               specs);
  const auto& kernels = p.iterations.front().step->kernels;
  const auto count = [&](std::string_view op) {
    return std::count_if(kernels.begin(), kernels.end(), [&](const Kernel& kernel) {
      return kernel.op == op && kernel.phase == Phase::forward;
    });
  };
  EXPECT_EQ(count("affine_norm_relu"), 33);
  EXPECT_EQ(count("affine_norm_add_relu"), 16);
  EXPECT_EQ(count("affine_norm"), 4);
}

// ResNet-50 has 33 norms with a ReLU alone. A pool reads the first; convolutions read the others, apply
// them and leave 2 numbers of 4 bytes a channel to a kernel. The 16 with a sum read their input once, not
// twice.
TEST(NormFusion, ByConvolutions) {
  SpecCache specs = test::source_specs();
  const Prediction p = predict({.model = "resnet50",
                                .framework = "mxnet_mlperf",
                                .gpu = "v100_sxm2_16gb",
                                .batch = 32,
                                .variant = "v1.5",
                                .precision = "amp"},
                               specs);
  int factors = 0, sums = 0;
  for (const Kernel& kernel : p.iterations.front().step->kernels) {
    if (kernel.op == "norm_factors") {
      ++factors;
      EXPECT_EQ(kernel.read_bytes, fixed_size(8 * std::get<ImageShape>(kernel.shape).channels));
    }
    if (kernel.op == "batch_norm_add_relu") {
      ++sums;
      const double map = 2.0 * 32 * static_cast<double>(std::get<ImageShape>(kernel.shape).channels) *
                         static_cast<double>(std::get<ImageShape>(kernel.shape).height *
                                             std::get<ImageShape>(kernel.shape).width);
      EXPECT_EQ(kernel.read_bytes.at(32), 2 * map);
    }
  }
  EXPECT_EQ(factors, 32);
  EXPECT_EQ(sums, 16);
}

double bytes_of(const TrainingStep& step) {
  double sum = 0;
  for (const Kernel& kernel : step.kernels)
    sum += (kernel.read_bytes.at(4) + kernel.written_bytes.at(4)) * static_cast<double>(kernel.repeat);
  return sum;
}

// Fewer kernels move fewer bytes, and every tensor lives forwards, whatever the model.
TEST(NormFusion, HoldsForEveryModel) {
  SpecCache specs = test::source_specs();
  for (const std::string& model : specs.catalog().names(Kind::model)) {
    for (const Variant& variant : specs.model(model)->variants) {
      for (const std::string& framework : variant.frameworks) {
        SCOPED_TRACE(model + " " + framework);
        const Prediction p =
            predict({.model = model, .framework = framework, .gpu = "t4", .batch = 4}, specs);
        const TrainingStep& step = *p.iterations.front().step;
        const TrainingStep fused = with_fused_norms(step);
        const bool less = fused.kernels.size() < step.kernels.size();
        EXPECT_EQ(bytes_of(fused) < bytes_of(step), less);
        EXPECT_EQ(fused.gradients.size(), step.gradients.size());
        for (const Tensor& tensor : fused.tensors) {
          ASSERT_LE(tensor.first_use, tensor.last_use);
          ASSERT_LT(tensor.last_use, static_cast<int>(fused.kernels.size()));
        }
      }
    }
  }
}

// One norm of 1000 b bytes before a ReLU: what passes between them, 3000 b bytes with its gradient's, is
// saved each way; a bit of each number is written once and read twice.
TEST(NormFusion, BytesOfOneNorm) {
  TrainingStep step;
  step.layers.resize(2);
  const Size map{0, 1000};
  const auto add = [&](std::string_view op, int layer, Phase phase, std::int64_t read, std::int64_t written) {
    Kernel& kernel = step.kernels.emplace_back();
    kernel.kind = layer == 0 ? KernelKind::batch_norm : KernelKind::elementwise;
    kernel.phase = phase;
    kernel.op = op;
    kernel.layer = layer;
    kernel.read_bytes = map * read;
    kernel.written_bytes = map * written;
  };
  add("batch_norm", 0, Phase::forward, 2, 1);
  add("relu", 1, Phase::forward, 1, 1);
  add("relu", 1, Phase::backward_data, 2, 1);
  add("batch_norm", 0, Phase::backward_data, 4, 1);
  step.tensors = {{TensorRole::feature_map, 0, map, 0, 1},
                  {TensorRole::feature_map, 1, map, 1, 2, 1, 2},
                  {TensorRole::gradient_map, 0, map, 2, 3}};
  const TrainingStep fused = with_fused_norms(step);
  ASSERT_EQ(fused.kernels.size(), 2u);
  EXPECT_EQ(fused.kernels[0].read_bytes, (Size{0, 2000}));
  EXPECT_EQ(fused.kernels[0].written_bytes, (Size{0, 1031}));  // 250 bits
  EXPECT_EQ(fused.kernels[1].read_bytes, (Size{0, 4062}));
  EXPECT_EQ(fused.kernels[1].written_bytes, (Size{0, 1000}));
  ASSERT_EQ(fused.tensors.size(), 2u);  // the ReLU's output, and the bits
  EXPECT_EQ(fused.tensors[0].layer, 1);
  EXPECT_EQ(fused.tensors[1].bytes, (Size{0, 31}));
  EXPECT_EQ(fused.tensors[1].first_again, 1);

  const TrainingStep forward = with_fused_norms(step, FusedNorms::forward_pass);
  ASSERT_EQ(forward.kernels.size(), 3u);
  EXPECT_EQ(forward.kernels[0].written_bytes, (Size{0, 1031}));
  EXPECT_EQ(forward.kernels[1].read_bytes, (Size{0, 2000}));  // the ReLU's gradient, as before
  EXPECT_EQ(forward.kernels[2].read_bytes, (Size{0, 4000}));  // the norm's
  ASSERT_EQ(forward.tensors.size(), 3u);                      // the ReLU's output, a gradient, the bits
  EXPECT_EQ(forward.tensors[2].last_use, 2);

  step.tensors[0].last_use = 3;  // something else reads it
  EXPECT_EQ(with_fused_norms(step).kernels.size(), 4u);
  EXPECT_EQ(with_fused_norms(step, FusedNorms::forward_pass).kernels.size(), 4u);
}

TEST(WhatIfCluster, PartsAddUpWithCommunication) {
  SpecCache specs = test::source_specs();
  Scenario scenario = on_two_machines(kResNet);
  scenario.cluster.network = "1 Gbit/s";
  const Prediction before = predict(scenario, specs);
  const Prediction after = predict_changed(scenario, {parse_change("link.network.bandwidth=x10")}, specs);
  Seconds was, is, waited;
  for (const TimePart& part : time_parts(before, after)) {
    was += part.before;
    is += part.after;
    if (part.name == "GPU waits for gradients") waited = part.before - part.after;
  }
  EXPECT_NEAR(was.si(), before.iteration_time().si(), 1e-9);
  EXPECT_NEAR(is.si(), after.iteration_time().si(), 1e-9);
  EXPECT_GT(waited, (was - is) * 0.9);
}

// All links, those of a kind, one by its name; a rate is what a change starts from.
TEST(WhatIfCluster, LinksAreChangedByKindAndByName) {
  SpecCache specs = test::source_specs();
  const Scenario scenario = on_two_machines(kResNet);
  const auto throughput = [&](const char* change) {
    return predict_changed(scenario, {parse_change(change)}, specs).throughput();
  };
  const double now = predict(scenario, specs).throughput();
  EXPECT_GT(throughput("link.network.bandwidth=x2"), now);
  EXPECT_EQ(throughput("link.network.bandwidth=20 Gbit/s"), throughput("link.network.bandwidth=x2"));
  EXPECT_EQ(throughput("link.network.bandwidth=x2"), throughput("network=20 Gbit/s"));
  EXPECT_EQ(throughput("link.nvlink.bandwidth=x2"), now);
  EXPECT_LT(throughput("link.bandwidth=1 Gbit/s"), now);
  EXPECT_LT(throughput("link.pcie3.bandwidth=1 Gbit/s"), now);
  EXPECT_LT(throughput("machine.root_ports.0.link=pcie3"), now * 1.01);
  EXPECT_THAT(test::message_of<SpecError>([&] { (void)throughput("machine.root_ports.9.link=pcie3"); }),
              HasSubstr("'9' is no item of a list of 4"));
}

TEST(WhatIfCluster, WhatJoinsGpusIsAmongTheElasticities) {
  SpecCache specs = test::source_specs();
  const Scenario scenario = on_two_machines(kResNet);
  const Prediction p = predict(scenario, specs);
  const auto all = sensitivities(scenario, p, specs);
  const auto found = std::find_if(all.begin(), all.end(),
                                  [](const Sensitivity& one) { return one.key == "link.network.bandwidth"; });
  ASSERT_NE(found, all.end());
  EXPECT_EQ(found->value, "10 Gbit/s");
  const double twice = predict_changed(scenario, {parse_change("network=20 Gbit/s")}, specs).throughput();
  EXPECT_NEAR(found->if_doubled, twice / p.throughput(), 1e-9);
  for (const char* key : {"link.network.latency", "link.pcie3.latency", "link.upi.bandwidth"}) {
    EXPECT_TRUE(std::any_of(all.begin(), all.end(), [&](const Sensitivity& one) { return one.key == key; }))
        << key;
  }
  const auto bounds = upper_bounds(p);
  EXPECT_EQ(bounds[3].name, "gradients exchanged at no cost");
  EXPECT_NEAR(bounds[3].throughput, 4 * predict(kResNet, specs).throughput(), 1e-6);
}

TEST(WhatIfCluster, FlagsAndChangesSayTheSame) {
  const std::vector<std::string> base{"whatif", "resnet50", "--framework", "mxnet",
                                      "--gpu",  "t4",       "--batch",     "8"};
  const auto with = [&](std::initializer_list<std::string> more) {
    std::vector<std::string> all = base;
    all.insert(all.end(), more);
    return test::run(all);
  };
  const auto result = with({"--gpus", "4", "--set", "gpus=1", "--format", "csv"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("GPU waits for gradients"));
  EXPECT_THAT(with({"--gpus", "2", "--set", "exchange=alreduce"}).err,
              HasSubstr("did you mean 'all_reduce'?"));
  EXPECT_THAT(with({"--set", "gpu.p4000.sm_count=x2"}).err, HasSubstr("is of p4000, and the gpu is t4"));
  EXPECT_THAT(with({"--set", "framework.rewrites.norms=fussed"}).err, HasSubstr("did you mean 'fused'?"));
  EXPECT_THAT(with({"--set", "compression=0"}).err, HasSubstr("above 0 and up to 1"));
}

}  // namespace
}  // namespace tbdsim
