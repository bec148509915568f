// Layouts of captured steps, arithmetic in four bits, exchanges of experts, and what would make a layout fit.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "hwspecs/base/error.h"
#include "simulate/job/fitting.h"
#include "simulate/job/job_prediction.h"
#include "simulate/prediction/predict.h"
#include "simulate/prediction/resolve.h"
#include "tests/hwspecs/message_of.h"
#include "tests/support/cli.h"

namespace tbdsim {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

const std::string kLlama =
    TBDSIM_SOURCE_DIR "/tests/captured/transformers.llama_two_layers.pure_bf16.sdpa.step.json.gz";
const std::string kMobileNet =
    TBDSIM_SOURCE_DIR "/tests/captured/timm.mobilenetv3_large_100.224.fp16.nchw.timm_benchmark.step.json.gz";

class LayoutsTest : public testing::Test {
 protected:
  using Texts = std::vector<std::pair<std::string, std::string>>;

  static JobRequest request(const std::string& model, const std::string& gpu, const Texts& texts) {
    JobRequest r;
    for (const auto& [key, value] :
         Texts{{"model", model}, {"gpu", gpu}, {"gpus", "8"}, {"global_batch", "64"}})
      set_job(r, key, value);
    for (const auto& [key, value] : texts) set_job(r, key, value);
    return r;
  }

  LayoutPrediction predict(const JobRequest& r) {
    const ResolvedJob job = resolve_job(r, specs_);
    PieceTable pieces(job.inputs);
    return predict_job(job, pieces).layout;
  }
  LayoutPrediction captured(const Texts& texts, const std::string& step = kLlama) {
    return predict(request(step, "h100_sxm", texts));
  }

  SpecCache specs_ = test::source_specs();
};

TEST_F(LayoutsTest, OneReplicaOfACapturedStepIsThePredictionOfOneGpu) {
  Scenario scenario;
  scenario.model = kLlama;
  scenario.framework = "pytorch";
  scenario.gpu = "h100_sxm";
  scenario.batch = 4;
  const Prediction one = tbdsim::predict(resolve(scenario, specs_));
  const LayoutPrediction plan =
      captured({{"gpus", "1"}, {"global_batch", "4"}, {"dp", "1"}, {"micro_batch", "4"}});
  EXPECT_NEAR(plan.step / one.iteration_time(), 1, 0.02);
  EXPECT_NEAR(plan.most.allocated / one.memory.model(), 1, 0.02);
  EXPECT_GT(plan.mfu, 0.05);
}

// Parameters, gradients and Adam's two moments of the captured step are in bf16: 8 bytes each.
TEST_F(LayoutsTest, StatesOfCapturedStepsAreDivided) {
  const RankMemory whole = captured({{"dp", "8"}}).first;
  const Bytes states = whole.parameters + whole.gradients + whole.optimizer;
  EXPECT_NEAR(whole.optimizer / whole.parameters, 2, 0.01);
  const RankMemory one = captured({{"zero", "1"}}).first, two = captured({{"zero", "2"}}).first;
  EXPECT_DOUBLE_EQ(one.optimizer.si(), whole.optimizer.si() / 8);
  EXPECT_DOUBLE_EQ(two.gradients.si(), whole.gradients.si() / 8);
  const RankMemory three = captured({{"zero", "3"}}).first;
  EXPECT_DOUBLE_EQ((three.parameters + three.gradients + three.optimizer).si(), states.si() / 8);
  EXPECT_GT(three.working, Bytes(0));  // gathered blocks
  EXPECT_LT(three.allocated, whole.allocated);
}

TEST_F(LayoutsTest, ExchangesOfCapturedStepsTakeTime) {
  const Seconds alone =
      captured({{"gpus", "1"}, {"global_batch", "8"}, {"dp", "1"}, {"micro_batch", "8"}}).step;
  const LayoutPrediction ddp = captured({{"dp", "8"}, {"micro_batch", "8"}});
  const LayoutPrediction fsdp = captured({{"zero", "3"}, {"micro_batch", "8"}});
  EXPECT_GT(ddp.step, alone);
  // Gathers each block twice and reduces; but each rank updates an eighth.
  EXPECT_GT(fsdp.communication.back().busy, ddp.communication.back().busy);
  EXPECT_LT(fsdp.parts.update, ddp.parts.update);
  EXPECT_LT(fsdp.step, alone * 2);
  EXPECT_GT(captured({{"zero", "3"}, {"micro_batch", "8"}, {"prefetch", "0"}}).step, fsdp.step);
  EXPECT_LE(captured({{"zero", "3"}, {"micro_batch", "8"}, {"reshard", "false"}}).step, fsdp.step);
  // Two micro-batches take their passes twice, exchange and update once.
  const Seconds twice = captured({{"dp", "8"}, {"micro_batch", "4"}}).step;
  EXPECT_GT(twice, captured({{"dp", "8"}, {"micro_batch", "4"}, {"global_batch", "32"}}).step);
}

// The closed form of a step's exchange beside the simulation of DDP's buckets, kernel by kernel.
TEST_F(LayoutsTest, ReplicasOfACapturedStepAgreeWithTheSimulationOfBuckets) {
  for (const std::string& step : {kLlama, kMobileNet}) {
    for (const auto& [gpus, machines] : {std::pair{2, 1}, {8, 1}, {8, 4}}) {
      Scenario scenario;
      scenario.model = step;
      scenario.framework = "pytorch";
      scenario.gpu = "h100_sxm";
      scenario.batch = 8;
      scenario.cluster = {.gpus = gpus, .machines = machines, .machine = "dgx_h100"};
      const Prediction simulated = tbdsim::predict(resolve(scenario, specs_));
      const std::string ranks = std::to_string(gpus * machines), batch = std::to_string(8 * gpus * machines);
      const LayoutPrediction closed =
          captured({{"gpus", ranks}, {"dp", ranks}, {"global_batch", batch}, {"micro_batch", "8"}}, step);
      EXPECT_NEAR(closed.step / simulated.iteration_time(), 1, 0.015) << step << " on " << ranks;
    }
  }
}

TEST_F(LayoutsTest, CapturedStepsAreNotDivided) {
  for (const char* key : {"tp", "pp", "cp", "ep"}) {
    EXPECT_THAT(test::message_of<UsageError>([&] {
                  (void)captured({{key, "2"}});
                }),
                AllOf(HasSubstr(std::string(key) + " 2 of "), HasSubstr("a captured step")))
        << key;
  }
  EXPECT_THAT(test::message_of<UsageError>([&] {
                (void)captured({{"recompute", "full"}});
              }),
              HasSubstr("expected none, or a capture with checkpoints"));
  EXPECT_THAT(test::message_of<UsageError>([&] {
                (void)captured({{"seq_len", "128"}});
              }),
              HasSubstr("seq_len means nothing to"));
  EXPECT_THAT(test::message_of<UsageError>([&] {
                (void)captured({{"stack", "nemo"}});
              }),
              HasSubstr("stack means nothing to"));
}

TEST(CapturedPlan, SearchesDdpAndFsdp) {
  const test::CliResult result =
      test::run({"plan", kMobileNet, "--gpu", "a100_sxm_80gb", "--gpus", "16", "--global-batch", "512"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, AllOf(HasSubstr("512 images, amp, pytorch"), HasSubstr("dp 16 mbs 32 "),
                                HasSubstr("zero 3 over 8"), HasSubstr("18 legal layouts")));
  EXPECT_THAT(result.out, AllOf(HasSubstr("images/s"), HasSubstr("USD/Gimage"), Not(HasSubstr("token"))));
}

// Sequences have a length: what is counted, and paid for, are tokens.
TEST_F(LayoutsTest, RatesOfCapturedSequencesAreOfTokens) {
  const ResolvedJob job = resolve_job(request(kLlama, "h100_sxm", {{"dp", "8"}}), specs_);
  ASSERT_GT(job.inputs.job.sequence, 1);
  EXPECT_EQ(job.counted(), "token");
  EXPECT_THAT(title_of(job), HasSubstr(fmt::format("64 sequences of {},", job.inputs.job.sequence)));
  const LayoutPrediction p = captured({{"dp", "8"}});
  EXPECT_NEAR(p.tokens_per_second * p.step.si(), 64.0 * static_cast<double>(job.inputs.job.sequence), 1e-3);
}

TEST_F(LayoutsTest, FourBitsAreFasterWhereThereAreSuchTensorCores) {
  const auto on_b200 = [&](const char* precision) {
    return predict(request("llama3_8b", "b200", {{"precision", precision}, {"zero", "1"}}));
  };
  EXPECT_LT(on_b200("nvfp4").step, on_b200("fp8").step);
  EXPECT_LT(on_b200("nvfp4").most.allocated, on_b200("fp8").most.allocated);
  EXPECT_THAT(test::message_of<UsageError>([&] {
                (void)predict(request("llama3_8b", "h100_sxm", {{"precision", "nvfp4"}}));
              }),
              HasSubstr("has no arithmetic for precision nvfp4; expected bf16, fp16, fp8, tf32"));
  EXPECT_THAT(test::message_of<UsageError>([&] {
                (void)predict(request("llama3_8b", "a100_sxm_80gb", {{"precision", "fp8"}}));
              }),
              HasSubstr("expected bf16, fp16, tf32"));
}

TEST_F(LayoutsTest, ExpertsExchangeLessOrBesidePasses) {
  const auto mixtral = [&](Texts texts) {
    texts.insert(texts.end(), {{"ep", "8"}, {"zero", "1"}});
    return predict(request("mixtral_8x7b", "h100_sxm", texts));
  };
  const auto all = static_cast<std::size_t>(LayoutDimension::expert);
  const DimensionTime each = mixtral({}).communication[all];
  // Two experts of eight on eight ranks lie on 2 ranks: nothing to save.
  EXPECT_DOUBLE_EQ(mixtral({{"dispatch_once", "true"}}).communication[all].busy.si(), each.busy.si());
  // On two ranks with four of them each: 2 - 2 * (4 * 3) / (8 * 7) = 11 / 7 copies of 2.
  const auto on_two = [&](const char* once) {
    return predict(request("mixtral_8x7b", "h100_sxm", {{"ep", "2"}, {"zero", "1"}, {"dispatch_once", once}}))
        .communication[all]
        .busy.si();
  };
  EXPECT_NEAR(on_two("true") / on_two("false"), 11.0 / 14, 0.05);
  const DimensionTime beside = mixtral({{"overlap_experts", "true"}}).communication[all];
  EXPECT_DOUBLE_EQ(beside.busy.si(), each.busy.si());
  EXPECT_LT(beside.exposed, each.exposed);
  EXPECT_GT(beside.exposed, Seconds(0));  // passes take longer beside them
}

TEST_F(LayoutsTest, GraphsTakeNoTimeOfTheHost) {
  const auto waits = [&](const char* graphs) {
    return predict(request("qwen3_30b_a3b", "b200", {{"seq_len", "64"}, {"cuda_graphs", graphs}}))
        .parts.launch;
  };
  EXPECT_EQ(waits("true"), Seconds(0));
  EXPECT_GT(waits("but_experts"), waits("true"));
  EXPECT_GT(waits("routers"), waits("but_experts"));
  EXPECT_GT(waits("false"), waits("routers"));
}

TEST_F(LayoutsTest, SaysWhatWouldMakeItFit) {
  const ResolvedJob job = resolve_job(request("llama3_8b", "h100_sxm", {{"dp", "8"}, {"zero", "1"}}), specs_);
  PieceTable pieces(job.inputs);
  ASSERT_FALSE(predict_job(job, pieces).fits());
  const std::vector<Remedy> remedies = what_would_fit(*job.layout, job, pieces);
  ASSERT_GE(remedies.size(), 2u);
  for (std::size_t i = 0; i < remedies.size(); ++i) {
    const LayoutPrediction& p = remedies[i].prediction;
    EXPECT_LE(p.most.device, job.usable()) << remedies[i].change;
    EXPECT_TRUE(is_legal(p.layout, job.inputs.shape, job.inputs.job)) << remedies[i].change;
    EXPECT_GE(p.step, remedies[i > 0 ? i - 1 : 0].prediction.step);
  }
  // Most that fits, and that more does not.
  ParallelLayout sharded = *job.layout;
  sharded.zero = 3;
  const std::int64_t most = largest_micro_batch(sharded, job, pieces);
  ASSERT_GT(most, 0);
  sharded.micro_batch = most;
  EXPECT_LE(predict_layout(sharded, pieces, job.peak).most.device, job.usable());
  sharded.micro_batch = 2 * most;
  EXPECT_GT(predict_layout(sharded, pieces, job.peak).most.device, job.usable());
}

TEST_F(LayoutsTest, SequencesAndModulesAreAmongWhatWouldFit) {
  const ResolvedJob job = resolve_job(
      request(
          "llama3_70b", "h100_sxm",
          {{"gpus", "512"}, {"global_batch", "2048"}, {"tp", "8"}, {"pp", "4"}, {"vp", "2"}, {"zero", "1"}}),
      specs_);
  PieceTable pieces(job.inputs);
  ASSERT_FALSE(predict_job(job, pieces).fits());
  std::vector<std::string> changes;
  for (const Remedy& remedy : what_would_fit(*job.layout, job, pieces)) changes.push_back(remedy.change);
  EXPECT_THAT(changes, testing::Contains("sequence_parallel true"));
  EXPECT_THAT(changes, testing::Contains("recompute_modules layernorm"));
}

TEST_F(LayoutsTest, UpdatesAndLossesTakeMemory) {
  const auto reserved = [&](const Texts& more) {
    Texts texts = {{"zero", "3"}, {"stack", "fsdp"}, {"micro_batch", "2"}, {"recompute", "full"}};
    texts.insert(texts.end(), more.begin(), more.end());
    return predict(request("llama3_8b", "h100_sxm", texts)).first.reserved.si();
  };
  const double n = 8'030'261'248, factor = 1.06;
  EXPECT_NEAR(reserved({{"foreach_update", "true"}}) - reserved({}), factor * 4 * n / 8, 1e6);
  // 16,384 tokens of 128,256 words in 12 bytes and 2 of holes, half of them.
  const double scores = 16384.0 * 128256;
  EXPECT_NEAR(reserved({}) - reserved({{"loss_chunks", "2"}}), factor * scores * 14 / 2, 1e8);
  EXPECT_NEAR(reserved({{"held_scores", "4"}}) - reserved({}), factor * scores * 4, 1e6);
}

TEST(PlanFits, NamesGpusOrChanges) {
  const auto plan = [](std::vector<std::string> more) {
    std::vector<std::string> all = {"plan",   "llama3_70b", "--gpu",          "h100_sxm",
                                    "--gpus", "8",          "--global-batch", "64"};
    all.insert(all.end(), more.begin(), more.end());
    return test::run(all).out;
  };
  EXPECT_THAT(plan({}), AllOf(HasSubstr("0 fit"), HasSubstr("On 32 GPUs there is a layout that fits.")));
  EXPECT_THAT(plan({"--tp", "4", "--zero", "0"}), HasSubstr("No change of one or two of its keys"));
  EXPECT_THAT(plan({"--tp", "4", "--zero", "3", "--recompute", "full"}), HasSubstr("are lacking"));
}

TEST(PlanNotes, SaysThatRecomputationIsWithoutEffect) {
  const auto plan = [](const char* stack) {
    return test::run({"plan", "llama3_8b", "--gpu", "h100_sxm", "--gpus", "8", "--global-batch", "64",
                      "--zero", "1", "--recompute", "selective", "--stack", stack})
        .out;
  };
  EXPECT_THAT(plan("megatron"),
              HasSubstr("recompute selective changes nothing: attention of this stack is one"));
  EXPECT_THAT(plan("megatron_deepspeed"), Not(HasSubstr("changes nothing")));
}

TEST(FrontCommand, NamesTheCommandThatHasAnOption) {
  const test::CliResult result = test::run({"--gpu", "titanxp", "--tp", "8"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err,
              AllOf(HasSubstr("unknown argument '--tp': an option of"), HasSubstr("'tbd-sim plan'")));
}

}  // namespace
}  // namespace tbdsim
