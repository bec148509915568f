// Jobs on clusters: how they are asked for, adapters, experts and exchanges of layouts, intervals, searches.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>

#include "hwspecs/base/error.h"
#include "simulate/job/job_prediction.h"
#include "simulate/layout/layout_reader.h"
#include "simulate/report/plan_table.h"
#include "tests/hwspecs/message_of.h"
#include "tests/support/cli.h"
#include "tests/support/temp_dir.h"

namespace tbdsim {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class JobTest : public testing::Test {
 protected:
  using Texts = std::vector<std::pair<std::string, std::string>>;

  static JobRequest request(const Texts& texts, const std::string& model = "llama3_8b") {
    JobRequest r;
    for (const auto& [key, value] : Texts{{"model", model},
                                          {"gpu", "h100_sxm"},
                                          {"gpus", "64"},
                                          {"global_batch", "128"},
                                          {"seq_len", "8192"}})
      set_job(r, key, value);
    for (const auto& [key, value] : texts) set_job(r, key, value);
    return r;
  }

  LayoutPrediction predict(const Texts& texts, const std::string& model = "llama3_8b") {
    const ResolvedJob job = resolve_job(request(texts, model), specs_);
    PieceTable pieces(job.inputs);
    return predict_job(job, pieces).layout;
  }

  SpecCache specs_ = test::source_specs();
};

TEST_F(JobTest, SaysWhatItAssumed) {
  const ResolvedJob usual = resolve_job(request({}), specs_);
  ASSERT_EQ(usual.assumed.size(), 3u);
  EXPECT_EQ(usual.assumed[0].what, "machine");
  EXPECT_THAT(usual.assumed[0].value, HasSubstr("dgx_h100"));
  EXPECT_EQ(usual.assumed[1].value, "8 x infiniband_400g for 8 GPUs");
  const ResolvedJob said = resolve_job(
      request({{"machine", "dgx_h100"}, {"network", "100 Gbit/s"}, {"oversubscription", "2"}}), specs_);
  EXPECT_TRUE(said.assumed.empty());
}

// A card has the same usual machine whatever it is called: a title, a driver's name, a path.
TEST_F(JobTest, UsualMachineIsThatOfTheCard) {
  for (const char* name : {"h100_sxm", "NVIDIA H100 SXM5 80 GB", "H100-SXM5-80GB"})
    EXPECT_EQ(resolve_job(request({{"gpu", name}}), specs_).machine, "dgx_h100") << name;
  EXPECT_EQ(resolve_job(request({{"gpu", "a100_sxm_80gb"}}), specs_).machine, "dgx_a100_80gb");
  const std::string path = std::string(TBDSIM_SOURCE_DIR) + "/hwspecs/gpus/h800_sxm.yaml";
  EXPECT_EQ(resolve_job(request({{"gpu", path}}), specs_).machine, "dgx_h100");
}

// 0.04 GiB are printed as 0.0, 0.06 as 0.1.
TEST_F(JobTest, TablesSayWhatNoFreeMemoryMeans) {
  const ResolvedJob job = resolve_job(request({{"dp", "64"}}), specs_);
  const auto notes_with = [&](double free) {
    LayoutPrediction layout = predict({{"dp", "64"}});
    layout.most.device = job.usable() - Bytes(free * (1 << 30));
    Plan plan;
    plan.best.push_back(layout);
    const std::vector<std::string> notes = plan_tables(plan, job).at(0).notes;
    return fmt::format("{}", fmt::join(notes, " "));
  };
  for (const double free : {0.0, 0.04}) EXPECT_THAT(notes_with(free), HasSubstr("With 0.0 free")) << free;
  EXPECT_THAT(notes_with(0.06), Not(HasSubstr("With 0.0 free")));
}

// Tenths of the memory begin at 80, 72, 64.8, 58.3, 52.5 GiB: 79 is in the first, 50 in the fifth.
TEST_F(JobTest, TheFrontHasTheFastestOfEachTenthOfMemory) {
  const ResolvedJob job = resolve_job(request({{"dp", "64"}}), specs_);
  LayoutPrediction layout = predict({{"dp", "64"}});
  Plan plan;
  plan.best.push_back(layout);
  for (const double gib : {80.0, 79.0, 70.0, 50.0}) {
    layout.most.device = Bytes(gib * (1 << 30));
    plan.pareto.push_back(layout);
  }
  const auto gib_of = [&](bool whole) {
    std::vector<std::string> texts;
    const std::vector<Table> tables = plan_tables(plan, job, whole);
    for (const auto& row : tables.at(1).rows) texts.push_back(row[11].text);
    return texts;
  };
  EXPECT_THAT(gib_of(false), testing::ElementsAre("80.0", "70.0", "50.0"));
  EXPECT_THAT(gib_of(true), testing::ElementsAre("80.0", "79.0", "70.0", "50.0"));
}

TEST_F(JobTest, KeysAreReadStrictly) {
  JobRequest r;
  EXPECT_EQ(test::message_of<UsageError>([&] { set_job(r, "batch", "8"); }),
            "'batch' is no key of a job; expected global_batch or micro_batch");
  EXPECT_EQ(test::message_of<UsageError>([&] { set_job(r, "globl_batch", "8"); }),
            "'globl_batch' is no key of a job; did you mean 'global_batch'?");
  EXPECT_EQ(test::message_of<UsageError>([&] { set_job(r, "expert_imbalance", "0.5"); }),
            "expert_imbalance '0.5'; expected a number from 1 to 1000");
  EXPECT_EQ(test::message_of<UsageError>([&] { set_job(r, "lora_targets", "attention,uq"); }),
            "lora_targets 'uq'; expected one of attention, output, up, down, all; did you mean 'up'?");
  EXPECT_EQ(test::message_of<UsageError>([&] { set_job(r, "reduce_bytes", "3"); }),
            "reduce_bytes '3'; expected one of 2, 4; did you mean '2'?");
  // Keys of layouts, stacks and sizes are keys of jobs, too.
  for (const auto keys : {layout_keys(), stack_keys(), shape_keys()}) {
    for (const std::string_view key : keys) EXPECT_TRUE(is_job_key(key)) << key;
  }
  // Every key has what sets it: a wrong value is an error, not ignored.
  for (const JobKey& key : job_keys()) {
    EXPECT_NE(test::message_of<UsageError>([&] { set_job(r, key.name, ""); }), "(nothing thrown)")
        << key.name;
  }
}

TEST_F(JobTest, FilesSayWhereTheyAreWrong) {
  const test::TempDir directory;
  const std::string good =
      directory.write("job.yaml", "gpus: 32\ntp: 2\nlora_targets: [up, down]\n").string();
  JobRequest r;
  read_job(r, good);
  EXPECT_EQ(r.job.gpus, 32);
  EXPECT_EQ(r.layout->tp, 2);
  EXPECT_TRUE(r.job.adapters.up && r.job.adapters.down && !r.job.adapters.attention);
  const std::string bad = directory.write("bad.yaml", "gpus: 32\ntp: many\n").string();
  EXPECT_THAT(test::message_of<SpecError>([&] { read_job(r, bad); }),
              HasSubstr("bad.yaml:2:5: tp 'many'; expected a whole number"));
  const std::string key = directory.write("key.yaml", "gpu: h100_sxm\npq: 2\n").string();
  EXPECT_THAT(test::message_of<SpecError>([&] { read_job(r, key); }), HasSubstr("did you mean 'pp'?"));
}

// Rank 16 beside queries, keys and values (4096 -> 6144) and the output (4096 -> 4096) of 32 blocks.
TEST_F(JobTest, AdaptersAloneTrain) {
  const double adapters = 32 * 16 * ((4096 + 6144) + (4096 + 4096)), all = 8'030'261'248 + adapters;
  const LayoutPrediction full = predict({{"dp", "64"}, {"recompute", "full"}});
  const LayoutPrediction lora = predict({{"dp", "64"}, {"recompute", "full"}, {"lora_rank", "16"}});
  EXPECT_DOUBLE_EQ(lora.first.parameters.si(), 2 * all);
  EXPECT_DOUBLE_EQ(lora.first.gradients.si(), 4 * adapters);
  EXPECT_DOUBLE_EQ(lora.first.optimizer.si(), 12 * adapters);
  // A third of the products is not computed: gradients of weights.
  EXPECT_LT(lora.parts.compute.si(), 0.8 * full.parts.compute.si());
  EXPECT_GT(lora.parts.compute.si(), 0.6 * full.parts.compute.si());
  EXPECT_LT(lora.parts.replicas, full.parts.replicas);
  // With ZeRO-3 the frozen weights are still gathered, and only adapters' gradients are reduced.
  const LayoutPrediction sharded = predict({{"zero", "3"}, {"lora_rank", "16"}});
  EXPECT_DOUBLE_EQ(sharded.first.parameters.si(), 2 * all / 64);
  EXPECT_DOUBLE_EQ(sharded.first.optimizer.si(), 12 * adapters / 64);
}

TEST_F(JobTest, AttentionInEightBitsIsFaster) {
  const LayoutPrediction half = predict({{"tp", "2"}, {"precision", "fp8"}});
  const LayoutPrediction eight = predict({{"tp", "2"}, {"precision", "fp8"}, {"fp8_attention", "true"}});
  EXPECT_LT(eight.parts.compute, half.parts.compute);
  EXPECT_EQ(test::message_of<UsageError>([&] {
              (void)resolve_job(request({{"fp8_attention", "true"}}), specs_);
            }),
            "fp8_attention with precision bf16; expected fp8 or nvfp4");
}

// Dao, "FlashAttention-2", 2023: the first version takes twice the second's time. On Hopper cuDNN is faster.
TEST_F(JobTest, AttentionIsOfTheKernelNamed) {
  const auto compute = [&](const char* kernel) {
    return predict({{"seq_len", "8192"}, {"attention_kernel", kernel}}).parts.compute.si();
  };
  const double cudnn = compute("cudnn"), second = compute("flash2"), first = compute("flash1");
  EXPECT_LT(cudnn, second);
  EXPECT_LT(second, first);
  EXPECT_EQ(predict({{"seq_len", "8192"}}).parts.compute.si(), cudnn);  // Megatron's
  EXPECT_EQ(
      test::message_of<UsageError>([&] {
        (void)resolve_job(request({{"gpu", "a100_sxm_80gb"}, {"attention_kernel", "flash3"}}), specs_);
      }),
      "attention_kernel flash3 on NVIDIA A100 SXM4 80 GB; expected flash1, flash2 or cudnn: it is for Hopper "
      "alone");
}

TEST_F(JobTest, AFullerRankOfExpertsTakesLonger) {
  const Texts layout = {{"ep", "8"}, {"zero", "1"}};
  Seconds last;
  for (const char* imbalance : {"1", "1.2", "2", "8", "100"}) {
    Texts texts = layout;
    texts.emplace_back("expert_imbalance", imbalance);
    const Seconds step = predict(texts, "mixtral_8x7b").step;
    EXPECT_GE(step, last) << imbalance;
    last = step;
  }
  // One rank cannot have more than the tokens of all eight.
  EXPECT_EQ(last, predict({{"ep", "8"}, {"zero", "1"}, {"expert_imbalance", "8"}}, "mixtral_8x7b").step);
}

TEST_F(JobTest, ContextIsExchangedRoundARingOrByHeads) {
  const LayoutPrediction ring = predict({{"cp", "8"}, {"zero", "1"}});
  const LayoutPrediction heads = predict({{"cp", "8"}, {"zero", "1"}, {"cp_exchange", "all_to_all"}});
  const auto context = static_cast<std::size_t>(LayoutDimension::context);
  EXPECT_GT(ring.communication[context].busy, Seconds(0));
  EXPECT_GT(heads.communication[context].busy, Seconds(0));
  // None of 4 all-to-alls forward and 4 backward has kernels beside it.
  EXPECT_EQ(heads.communication[context].busy, heads.communication[context].exposed);
  EXPECT_EQ(heads.first.parameters, ring.first.parameters);
  EXPECT_EQ(
      test::message_of<UsageError>([&] {
        (void)resolve_job(request({{"cp", "16"}, {"cp_exchange", "all_to_all"}}), specs_);
      }),
      "llama3_8b 8 heads of keys and values cannot be divided by tp x cp 16; the nearest that divides is "
      "tp x cp 8");
}

TEST_F(JobTest, BlocksThatAreNotPrefetchedAreWaitedFor) {
  const LayoutPrediction none = predict({{"zero", "3"}, {"prefetch", "0"}});
  const LayoutPrediction one = predict({{"zero", "3"}});
  const LayoutPrediction two = predict({{"zero", "3"}, {"prefetch", "2"}});
  EXPECT_GT(none.step, one.step);
  EXPECT_LT(none.first.working, one.first.working);
  EXPECT_LT(one.first.working, two.first.working);
}

TEST_F(JobTest, CommunicationSumsToTheStepsParts) {
  for (const Texts& texts :
       {Texts{{"tp", "2"}, {"pp", "2"}, {"cp", "2"}, {"zero", "1"}}, Texts{{"zero", "3"}}}) {
    const LayoutPrediction p = predict(texts);
    const auto exposed = [&](LayoutDimension d) {
      return p.communication[static_cast<std::size_t>(d)].exposed;
    };
    const Seconds within = exposed(LayoutDimension::tensor) + exposed(LayoutDimension::context) +
                           exposed(LayoutDimension::expert);
    EXPECT_NEAR(within.si(), p.parts.within.si(), 1e-9 * p.step.si());
    EXPECT_EQ(exposed(LayoutDimension::stages), p.parts.sends);
    EXPECT_EQ(exposed(LayoutDimension::replicas), p.parts.replicas);
  }
}

TEST_F(JobTest, MemoryOfEachStage) {
  const ResolvedJob job = resolve_job(request({{"pp", "4"}, {"zero", "1"}}), specs_);
  PieceTable pieces(job.inputs);
  const std::vector<RankMemory> memory = memory_by_stage(*job.layout, pieces);
  const LayoutPrediction p = predict_job(job, pieces).layout;
  ASSERT_EQ(memory.size(), 4u);
  EXPECT_EQ(memory.front().device, p.first.device);
  EXPECT_EQ(memory.back().device, p.last.device);
  EXPECT_GT(memory[0].activations, memory[1].activations);  // more micro-batches in flight
}

TEST_F(JobTest, IntervalsHoldThePrediction) {
  const ResolvedJob job = resolve_job(request({{"tp", "2"}, {"zero", "1"}}), specs_);
  PieceTable pieces(job.inputs);
  const JobPrediction p = predict_job(job, pieces);
  EXPECT_LT(p.tokens_interval().low, p.layout.tokens_per_second);
  EXPECT_GT(p.tokens_interval().high, p.layout.tokens_per_second);
  EXPECT_LT(p.factor(), 1.5);
  EXPECT_GT(p.factor(), 1.05);
}

TEST_F(JobTest, SearchesWhatIsNotSaid) {
  const ResolvedJob job = resolve_job(request({{"tp", "4"}, {"zero", "2"}, {"search", "true"}}), specs_);
  const std::vector<ParallelLayout> layouts = layouts_of(job);
  ASSERT_GT(layouts.size(), 10u);
  for (const ParallelLayout& l : layouts) EXPECT_TRUE(l.tp == 4 && l.zero == 2) << to_text(l);
  EXPECT_THAT(test::message_of<UsageError>([&] {
                (void)layouts_of(resolve_job(request({{"tp", "3"}, {"search", "true"}}), specs_));
              }),
              HasSubstr("with what is said of it"));
}

}  // namespace
}  // namespace tbdsim
