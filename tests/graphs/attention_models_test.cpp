// Transformer and BERT: how their work grows with the sequence, what their variants run and are called.
#include <algorithm>

#include <gmock/gmock.h>

#include "tests/graphs/model_fixture.h"

namespace tbdsim {
namespace {

Model model_of(const std::string& name, const std::string& variant, std::int64_t length) {
  const ModelFile file = read_model_file(TBDSIM_SOURCE_DIR "/graphs/models/" + name + ".yaml");
  return build_model(file, find_variant(file, variant, ""), {{"sequence_length", length}});
}

std::int64_t forward_macs(const Model& model) {
  Size sum;
  for (const LayerSummary& layer : test::step_of(model).layers) sum += layer.forward_macs;
  EXPECT_EQ(sum.fixed, 0);
  return sum.per_sample;
}

std::int64_t kernels_called(const TrainingStep& step, std::string_view op) {
  return std::count_if(step.kernels.begin(), step.kernels.end(),
                       [&](const Kernel& kernel) { return kernel.op == op; });
}

// With n words on each side: products of 6 encoder layers 3 + 1 + 4 + 4 matrices of 512 x 512, of 6 decoder
// layers 3 + 1 + 1 + 2 + 1 + 4 + 4, the softmax 33708 x 512, for each word; 18 attentions of 2 n^2 512.
TEST(Transformer, WorkGrowsWithTheSentence) {
  for (const std::int64_t n : {8, 10, 25, 100, 215}) {
    const std::int64_t expected = n * ((6 * 12 + 6 * 16) * 512 * 512 + 33708 * 512) + 18 * 2 * n * n * 512;
    EXPECT_EQ(forward_macs(model_of("transformer", "tensor2tensor", n)), expected) << n;
    EXPECT_EQ(forward_macs(model_of("transformer", "pytorch", n)), expected) << n;
  }
}

// 12 + 18 residual branches, 2 inputs, 6 + 12 attentions and 12 ReLUs have dropout; 18 masks hide padding or
// later words, in PyTorch only the decoder's 6; table and gradient of 16 shards are joined and split once.
TEST(Transformer, VariantsRunWhatTheirProgramsDo) {
  const TrainingStep tf = test::step_of(model_of("transformer", "tensor2tensor", 25));
  EXPECT_EQ(kernels_called(tf, "dropout"), 2 * (30 + 2 + 18 + 12));
  EXPECT_EQ(kernels_called(tf, "attention_mask"), 18);
  EXPECT_EQ(kernels_called(tf, "copy"), 18);  // of parts before the heads
  EXPECT_EQ(kernels_called(tf, "split"), 1);
  const TrainingStep pytorch = test::step_of(model_of("transformer", "pytorch", 32));
  EXPECT_EQ(kernels_called(pytorch, "dropout"), 2 * (30 + 2 + 18 + 12));
  EXPECT_EQ(kernels_called(pytorch, "attention_mask"), 6);
  EXPECT_EQ(kernels_called(pytorch, "copy"), 0);
  EXPECT_EQ(kernels_called(pytorch, "split"), 0);
}

// The table has one gradient, dense also where a framework's are sparse: source, target and softmax share it.
TEST(Transformer, SharesOneDenseTable) {
  const Lowering sparse{.embedding_gradient = TableGradient::sparse};
  const TrainingStep step = test::step_of(model_of("transformer", "tensor2tensor", 25), sparse);
  std::int64_t tables = 0;
  for (const Tensor& tensor : step.tensors) {
    if (tensor.role == TensorRole::weight_gradients && tensor.bytes == fixed_size(4 * 33708 * 512)) ++tables;
  }
  EXPECT_EQ(tables, 1);
}

// A layer of width w for each word 4 w^2 and 8 w^2, for n words 2 n^2 w; the answer's 2 w a word.
TEST(Bert, WorkGrowsWithTheSequence) {
  for (const std::int64_t n : {128, 384, 512}) {
    EXPECT_EQ(forward_macs(model_of("bert_base", "squad", n)),
              12 * (n * 12 * 768 * 768 + 2 * n * n * 768) + n * 2 * 768);
    EXPECT_EQ(forward_macs(model_of("bert_large", "squad", n)),
              24 * (n * 12 * 1024 * 1024 + 2 * n * n * 1024) + n * 2 * 1024);
  }
}

TEST(AttentionModels, AreCalledAsInTablesOfRuns) {
  const auto called = [](const char* model, const char* name) {
    return find_variant(read_model_file(TBDSIM_SOURCE_DIR "/graphs/models/" + std::string(model) + ".yaml"),
                        name, "")
        .name;
  };
  EXPECT_EQ(called("bert_base", "DeepLearningExamples bert_base SQuAD, sequence length 384"), "squad");
  EXPECT_EQ(called("bert_large", "DeepLearningExamples bert_large SQuAD, sequence length 384"), "squad");
  EXPECT_EQ(called("transformer",
                   "base, pre-norm, shared 33708x512 embedding, 32+32 tokens, unfused attention, Adam"),
            "pytorch");
}

}  // namespace
}  // namespace tbdsim
