// Keys of jobs: each changes a number, is refused, or is said to change nothing.
#include <gmock/gmock.h>

#include "hwspecs/base/error.h"
#include "simulate/job/idle_keys.h"
#include "simulate/job/job_prediction.h"
#include "tests/hwspecs/message_of.h"
#include "tests/support/cli.h"

namespace tbdsim {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;
using Texts = std::vector<std::pair<std::string, std::string>>;

class JobKeysTest : public testing::Test {
 protected:
  static JobRequest request(const Texts& texts) {
    JobRequest r;
    for (const auto& [key, value] : texts) set_job(r, key, value);
    if (!r.layout) r.layout.emplace();
    return r;
  }
  LayoutPrediction predict(const Texts& texts) {
    const ResolvedJob job = resolve_job(request(texts), specs_);
    PieceTable pieces(job.inputs);
    return predict_job(job, pieces).layout;
  }
  std::vector<std::string> notes(const Texts& texts) {
    const ResolvedJob job = resolve_job(request(texts), specs_);
    return notes_of_idle_keys(job, *job.layout);
  }

  // Times and bytes of a job with one key more; empty where that is refused, or said to change nothing.
  std::vector<double> numbers(Texts texts, const std::string& key, const std::string& value) {
    texts.emplace_back(key, value);
    try {
      const ResolvedJob job = resolve_job(request(texts), specs_);
      for (const std::string& note : notes_of_idle_keys(job, *job.layout)) {
        if (note.starts_with(key + " ")) return {};
      }
      PieceTable pieces(job.inputs);
      return numbers_of(predict_job(job, pieces).layout);
    } catch (const UsageError&) {
      return {};
    }
  }
  static std::vector<double> numbers_of(const LayoutPrediction& p) {
    std::vector<double> all = {p.step.si(), p.mfu, p.parts.compute.si(), p.parts.within.si()};
    for (const RankMemory* m : {&p.first, &p.last})
      for (const Bytes part : {m->parameters, m->gradients, m->optimizer, m->activations, m->working,
                               m->allocated, m->reserved, m->device})
        all.push_back(part.si());
    return all;
  }

  SpecCache specs_ = test::source_specs();
};

const Texts kDense = {{"model", "llama3_8b"}, {"gpu", "h100_sxm"}, {"gpus", "64"}, {"global_batch", "256"},
                      {"seq_len", "4096"},    {"tp", "2"},         {"pp", "2"},    {"cp", "2"},
                      {"micro_batch", "2"},   {"zero", "1"}};
const Texts kShards = {{"model", "llama3_8b"},  {"gpu", "h100_sxm"}, {"gpus", "64"},
                       {"global_batch", "256"}, {"seq_len", "4096"}, {"micro_batch", "2"},
                       {"zero", "3"},           {"stack", "fsdp"},   {"recompute", "full"}};
const Texts kExperts = {{"model", "mixtral_8x7b"}, {"gpu", "b200"}, {"gpus", "64"}, {"global_batch", "256"},
                        {"seq_len", "4096"},       {"tp", "2"},     {"ep", "4"},    {"zero", "1"},
                        {"precision", "fp8"}};
const Texts kAdapters = {{"model", "llama3_8b"},         {"gpu", "a100_sxm_80gb"}, {"gpus", "8"},
                         {"global_batch", "64"},         {"seq_len", "2048"},      {"lora_rank", "16"},
                         {"stack", "megatron_deepspeed"}};

// Values of which one at least differs from what each of the jobs has.
const std::pair<const char*, std::vector<const char*>> kValues[] = {{"machine", {"gb200_nvl72", "selene"}},
                                                                    {"network", {"100 Gbit/s"}},
                                                                    {"oversubscription", {"2"}},
                                                                    {"leaf_gpus", {"16"}},
                                                                    {"gpus", {"32", "128"}},
                                                                    {"global_batch", {"512"}},
                                                                    {"seq_len", {"8192"}},
                                                                    {"precision", {"tf32"}},
                                                                    {"fp8_attention", {"true"}},
                                                                    {"stack", {"internevo"}},
                                                                    {"lora_rank", {"8"}},
                                                                    {"lora_targets", {"all"}},
                                                                    {"expert_imbalance", {"1.5"}},
                                                                    {"dp", {"4"}},
                                                                    {"tp", {"4"}},
                                                                    {"pp", {"4"}},
                                                                    {"vp", {"2"}},
                                                                    {"cp", {"4"}},
                                                                    {"cp_exchange", {"all_to_all"}},
                                                                    {"ep", {"2"}},
                                                                    {"etp", {"2"}},
                                                                    {"zero", {"2", "3"}},
                                                                    {"shard", {"4"}},
                                                                    {"reshard", {"false"}},
                                                                    {"prefetch", {"2", "0"}},
                                                                    {"sequence_parallel", {"true"}},
                                                                    {"uneven", {"true"}},
                                                                    {"micro_batch", {"4"}},
                                                                    {"recompute", {"full", "operators"}},
                                                                    {"recompute_modules", {"mlp"}},
                                                                    {"recompute_layers", {"1"}},
                                                                    {"schedule", {"gpipe"}},
                                                                    {"fused_attention", {"false", "true"}},
                                                                    {"attention_kernel", {"flash1"}},
                                                                    {"fused_pointwise", {"false", "true"}},
                                                                    {"fused_loss", {"in_place"}},
                                                                    {"overlap_tensor", {"true"}},
                                                                    {"overlap_experts", {"true"}},
                                                                    {"dispatch_once", {"true"}},
                                                                    {"fp8_activations", {"true"}},
                                                                    {"operator_fuser", {"true"}},
                                                                    {"early_stop", {"true"}},
                                                                    {"overlap_replicas", {"false", "true"}},
                                                                    {"foreach_update", {"true"}},
                                                                    {"loss_chunks", {"4"}},
                                                                    {"held_scores", {"4"}},
                                                                    {"cublas_workspace", {"64"}},
                                                                    {"reduce_bytes", {"2", "4"}},
                                                                    {"gradient_bytes", {"2", "6"}},
                                                                    {"parameter_bytes", {"4"}},
                                                                    {"master_bytes", {"2"}},
                                                                    {"moment_bytes", {"2"}},
                                                                    {"layers", {"16"}},
                                                                    {"hidden", {"2048"}},
                                                                    {"heads", {"16"}},
                                                                    {"kv_heads", {"16"}},
                                                                    {"head_size", {"64"}},
                                                                    {"value_size", {"64"}},
                                                                    {"ffn", {"4096"}},
                                                                    {"vocabulary", {"64000"}},
                                                                    {"positions", {"2048"}},
                                                                    {"gated", {"false"}},
                                                                    {"rms_norm", {"false"}},
                                                                    {"rotary", {"false"}},
                                                                    {"bias", {"true"}},
                                                                    {"tied", {"true"}},
                                                                    {"dropout", {"true"}},
                                                                    {"causal", {"false"}},
                                                                    {"q_rank", {"512"}},
                                                                    {"kv_rank", {"512"}},
                                                                    {"rotary_size", {"64"}},
                                                                    {"experts", {"4"}},
                                                                    {"experts_per_token", {"1"}},
                                                                    {"expert_ffn", {"2048"}},
                                                                    {"shared_ffn", {"2048"}},
                                                                    {"dense_layers", {"2"}}};

TEST_F(JobKeysTest, NoneIsIgnored) {
  for (const Texts& job : {kDense, kShards, kExperts, kAdapters}) {
    const std::vector<double> before = numbers_of(predict(job));
    for (const auto& [key, values] : kValues) {
      const bool heard = std::any_of(values.begin(), values.end(), [&, name = key](const char* value) {
        return numbers(job, name, value) != before;
      });
      EXPECT_TRUE(heard) << key << " of " << job[0].second;
    }
  }
}

// Launches of graphs take no time, which is seen where the host sets the pace.
TEST_F(JobKeysTest, AllKeysAreTried) {
  const std::vector<std::string_view> elsewhere = {"model", "gpu", "profile", "search", "cuda_graphs"};
  for (const JobKey& known : job_keys()) {
    const bool tried = std::any_of(std::begin(kValues), std::end(kValues),
                                   [&](const auto& one) { return one.first == known.name; });
    EXPECT_TRUE(tried || std::find(elsewhere.begin(), elsewhere.end(), known.name) != elsewhere.end())
        << known.name;
  }
  Texts small = kAdapters;
  small.insert(small.end(), {{"layers", "2"},
                             {"hidden", "512"},
                             {"heads", "8"},
                             {"kv_heads", "8"},
                             {"head_size", "64"},
                             {"value_size", "64"},
                             {"ffn", "2048"},
                             {"vocabulary", "4096"}});
  const LayoutPrediction launched = predict(small);
  small.emplace_back("cuda_graphs", "true");
  EXPECT_LT(predict(small).step, launched.step);
}

TEST_F(JobKeysTest, SaysWhatChangesNothing) {
  Texts job = kDense;
  job.insert(job.end(), {{"prefetch", "2"}, {"lora_targets", "up"}});
  EXPECT_THAT(notes(job), ElementsAre("lora_targets up changes nothing: lora_rank is 0.",
                                      "prefetch 2 changes nothing: zero is not 3."));
  EXPECT_THAT(notes(kDense), IsEmpty());
  job.back() = {"lora_rank", "8"};
  EXPECT_THAT(notes(job), ElementsAre(StartsWith("prefetch 2")));
}

TEST_F(JobKeysTest, SizesUnlikeTheModels) {
  Texts job = kDense;
  job.emplace_back("layers", "16");
  // Blocks of one rank: of 16 layers on two stages, not of 32.
  EXPECT_LT(predict(job).step.si(), 0.6 * predict(kDense).step.si());
  EXPECT_EQ(test::message_of<UsageError>([&] {
              (void)predict({{"model", "llama3_8b"}, {"gpu", "h100_sxm"}, {"shared_ffn", "512"}});
            }),
            "shared_ffn 512 without experts; expected both");
}

// A byte less for each of 2 x 14336 inner features of 8192 tokens in 32 blocks.
TEST_F(JobKeysTest, InputsOfActivationsInFp8) {
  Texts job = {{"model", "llama3_8b"},
               {"gpu", "h100_sxm"},
               {"gpus", "8"},
               {"global_batch", "64"},
               {"seq_len", "8192"}};
  const double half = predict(job).first.activations.si();
  job.emplace_back("fp8_activations", "true");
  EXPECT_DOUBLE_EQ(half - predict(job).first.activations.si(), 32.0 * 8192 * 2 * 14336);
}

// 8 NVLinks instead of 18; all else is alike, but that an H100's own calls leave residuals in its profile.
TEST_F(JobKeysTest, GpusHaveTheirOwnLinks) {
  Texts job = kDense;
  const LayoutPrediction many = predict(job);
  job[1].second = "h800_sxm";
  const LayoutPrediction few = predict(job);
  const auto tensor = static_cast<std::size_t>(LayoutDimension::tensor);
  EXPECT_GT(few.communication[tensor].busy.si(), 1.5 * many.communication[tensor].busy.si());
  EXPECT_NEAR(few.parts.compute / many.parts.compute, 1, 0.005);
}

// Mixtral's blocks: 8 experts of 3 x 4096 x 14336; each of two ranks has half of four experts, or whole ones.
TEST_F(JobKeysTest, RanksShareExpertsMatrices) {
  const Texts job = {
      {"model", "mixtral_8x7b"}, {"gpu", "h100_sxm"}, {"gpus", "8"}, {"global_batch", "64"},
      {"seq_len", "4096"},       {"tp", "2"},         {"ep", "2"},   {"sequence_parallel", "true"}};
  Texts shared = job;
  shared.emplace_back("etp", "2");
  const LayoutPrediction whole = predict(job), half = predict(shared);
  const double experts = 32.0 * 4 * 3 * 4096 * 14336;
  EXPECT_DOUBLE_EQ(whole.first.parameters.si() - half.first.parameters.si(), 2 * experts / 2);
  // The products are as many, of half the inner features, for twice the tokens, which are gathered.
  EXPECT_NEAR(half.parts.compute / whole.parts.compute, 1, 0.1);
  EXPECT_GT(half.communication[static_cast<std::size_t>(LayoutDimension::expert)].busy,
            whole.communication[static_cast<std::size_t>(LayoutDimension::expert)].busy);
  shared.back().second = "3";
  EXPECT_THAT(test::message_of<UsageError>([&] { (void)predict(shared); }),
              HasSubstr("14336 inner features of an expert cannot be divided by etp 3"));
}

}  // namespace
}  // namespace tbdsim
