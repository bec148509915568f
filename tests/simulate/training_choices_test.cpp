// Choices of a training run: which weights train, how often they are updated, what is on the host.
#include "simulate/workload/training_choices.h"

#include <gmock/gmock.h>

#include "hwspecs/base/error.h"
#include "simulate/prediction/predict.h"
#include "simulate/prediction/scenario_keys.h"
#include "simulate/report/training_notes.h"
#include "tests/support/cli.h"

namespace tbdsim {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

struct Choice {
  const char* key;
  const char* value;
};

// GPT-2 (small) of 256 words in pure bf16: 124,439,808 weights.
Prediction gpt2_with(std::initializer_list<Choice> choices, const std::string& model = "gpt2") {
  SpecCache specs = test::source_specs();
  Scenario scenario{.model = model,
                    .framework = "pytorch_hf",
                    .gpu = "a100_sxm_80gb",
                    .batch = 2,
                    .precision = "bf16_pure",
                    .sizes = {{"sequence_length", 256}}};
  for (const auto& [key, value] : choices) find_scenario_key(key)->set(scenario, value);
  return predict(scenario, specs);
}

Bytes memory(const Prediction& p, MemoryCategory category) { return p.memory.use[category]; }

// Four batches take less than four iterations, for three updates are spared. At the peak, which is the loss,
// gradients of the batches before are there, 2 B for each weight, in blocks of 512 B.
TEST(TrainingChoices, AnUpdateMayFollowSeveralBatches) {
  const Prediction one = gpt2_with({});
  const Prediction four = gpt2_with({{"accumulate", "4"}});
  EXPECT_LT(four.iteration_time(), one.iteration_time() * 4);
  EXPECT_GT(four.iteration_time(), one.iteration_time() * 3);
  EXPECT_DOUBLE_EQ(four.throughput(), 4 * 2 * 256 / four.iteration_time().si());
  EXPECT_EQ(memory(one, MemoryCategory::weight_gradients), Bytes(0));
  EXPECT_NEAR(memory(four, MemoryCategory::weight_gradients).si(), 2 * 124'439'808.0, 150 * 512);
  EXPECT_DOUBLE_EQ(four.samples_per_second() * 256, four.throughput());
  EXPECT_EQ(four.batches_read(), 4);
}

// Adapters of rank 8 at the two products of each of twelve attentions: 12 x 8 x (768 + 2304 + 768 + 768).
TEST(TrainingChoices, OnlyAdaptersHaveGradientsAndStates) {
  const Prediction adapters = gpt2_with({{"lora", "8"}, {"accumulate", "2"}});
  constexpr double kTrained = 12 * 8 * (768 + 2304 + 768 + 768);
  EXPECT_NEAR(memory(adapters, MemoryCategory::weight_gradients).si(), 2 * kTrained, 48 * 512);
  EXPECT_NEAR(memory(adapters, MemoryCategory::dynamic).si(), 4 * kTrained, 48 * 512);
  EXPECT_THAT(training_notes(std::span(&adapters, 1)),
              testing::ElementsAre(HasSubstr("0.442 million of 124.9 million weights are trained"),
                                   HasSubstr("an update follows 2 batches, 4 sequences")));
}

// Pure bf16: 2 B of gradient for each weight go to the host, 2 B of weight come back, no state is on the GPU.
TEST(TrainingChoices, TheOptimizerMayBeOnTheHost) {
  const Prediction device = gpt2_with({});
  const Prediction host = gpt2_with({{"offload", "optimizer"}});
  EXPECT_EQ(memory(host, MemoryCategory::dynamic), Bytes(0));
  EXPECT_GT(host.iteration_time(), device.iteration_time());
  EXPECT_THAT(
      training_notes(std::span(&host, 1)),
      testing::ElementsAre(HasSubstr("237.4 MiB of gradients go there and 237.4 MiB of weights come back")));
}

TEST(TrainingChoices, RecomputationAndOffloadingKeepLess) {
  const Prediction kept = gpt2_with({});
  const Prediction full = gpt2_with({{"recompute", "full"}});
  const Prediction offloaded = gpt2_with({{"offload", "activations"}});
  EXPECT_LT(memory(full, MemoryCategory::feature_maps), memory(kept, MemoryCategory::feature_maps));
  EXPECT_LT(memory(offloaded, MemoryCategory::feature_maps), memory(kept, MemoryCategory::feature_maps));
  EXPECT_GT(full.iteration_time(), kept.iteration_time());
  EXPECT_GE(offloaded.iteration_time(), kept.iteration_time());
}

// 4,096 positions of 50,257 words: 412 MB of scores in bf16, three of them with the fp32 log softmax; 64
// parts hold a 64th, and add gradients of 39 million weights 64 times.
TEST(TrainingChoices, TheLossMayHoldAPartOfTheScores) {
  const auto with = [](const char* loss) { return gpt2_with({{"batch", "16"}, {"loss", loss}}); };
  const Prediction eager = with("eager");
  const Prediction fused = with("fused");
  const Prediction parts = with("fused_linear");
  const Prediction cut = with("cut");
  EXPECT_LT(memory(fused, MemoryCategory::feature_maps), memory(eager, MemoryCategory::feature_maps));
  EXPECT_LT(memory(parts, MemoryCategory::feature_maps), memory(fused, MemoryCategory::feature_maps));
  EXPECT_LT(memory(cut, MemoryCategory::feature_maps), memory(fused, MemoryCategory::feature_maps));
  EXPECT_LT(fused.iteration_time(), eager.iteration_time());
  EXPECT_GT(parts.iteration_time(), fused.iteration_time());
  EXPECT_THAT(training_notes(std::span(&parts, 1)),
              testing::ElementsAre(HasSubstr("loss by fused_linear kernels")));
}

// Scores of 12 heads by 1,024 x 1,024 in each of 16 sequences leave the GPU's registers only where a program
// multiplies, masks and normalizes them itself.
TEST(TrainingChoices, AttentionMayBeOfAnyLibrary) {
  const auto with = [](const char* kernels) {
    return gpt2_with({{"batch", "16"}, {"sequence_length", "1024"}, {"attention", kernels}});
  };
  const Prediction eager = with("eager");
  const Prediction flash = with("flash");
  EXPECT_GT(memory(eager, MemoryCategory::feature_maps), memory(flash, MemoryCategory::feature_maps));
  EXPECT_GT(eager.iteration_time(), flash.iteration_time());
  EXPECT_GT(with("memory_efficient").iteration_time(), flash.iteration_time());
  EXPECT_THAT(training_notes(std::span(&flash, 1)),
              testing::ElementsAre(HasSubstr("attention by flash kernels")));
}

TEST(TrainingChoices, SparseRowsNeedAnOptimizerThatUpdatesThemAlone) {
  const test::CliResult result = test::run(
      {"--gpu", "t4", "--batch", "2048", "--model", "dlrm", "--framework", "pytorch", "--optimizer", "adam"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err,
              HasSubstr("layer 'tables': its gradient is sparse, but the optimizer 'adam' of variant "
                        "'mlperf' updates all rows; expected one of none, sgd"));
}

TEST(TrainingChoices, NamesWhatIsWrong) {
  const auto fails = [](std::initializer_list<Choice> choices, const char* says, const char* model = "gpt2") {
    EXPECT_THAT([&] { (void)gpt2_with(choices, model); }, ThrowsMessage<UsageError>(HasSubstr(says)));
  };
  fails({{"recompute", "ful"}}, "did you mean 'full'?");
  fails({{"optimizer", "adamv"}}, "did you mean 'adam");
  fails({{"offload", "optimiser"}}, "did you mean 'optimizer'?");
  fails({{"recompute", "full"}, {"offload", "activations"}}, "computed again already");
  fails({{"offload", "activations"}, {"recompute", "full"}}, "offloaded already");
  fails({{"accumulate", "0"}}, "no whole number from 1");
  fails({{"lora", "8"}, {"lora_layers", "atention"}}, "did you mean 'attention'?");
  fails({{"freeze", "a,,b"}}, "has an empty part");
  fails({{"optimizer", "muon"}, {"offload", "optimizer"}}, "multiplies matrices");
  fails({{"precision", "mxfp8"}}, "no tensor cores that scale blocks");
  fails({{"precision", "nvfp4"}}, "no tensor cores that scale blocks");
  fails({{"loss", "fused_linea"}}, "did you mean 'fused_linear'?");
  fails({{"loss", "fused"}}, "no cross entropy over a vocabulary", "transformer");
  fails({{"attention", "flsh"}}, "did you mean 'flash'?");
  fails({{"attention", "flash"}}, "none of queries, keys and values", "transformer");
}

}  // namespace
}  // namespace tbdsim
