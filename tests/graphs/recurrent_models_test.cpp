// Recurrent models: kernels of an iteration against a profile, what unrolled layers keep, how many kernels
// run.
#include <gmock/gmock.h>

#include "tests/graphs/model_fixture.h"

namespace tbdsim {
namespace {

constexpr Lowering kMxnet{.relu_keeps = ReluKeeps::input_and_output, .joins = ConcatLowering::parts};

Model build(const std::string& model, const std::string& variant) {
  const ModelFile file = read_model_file(TBDSIM_SOURCE_DIR "/graphs/models/" + model + ".yaml");
  return build_model(file, find_variant(file, variant, ""));
}

// Sockeye with sentences of other lengths on either side.
Model sockeye(std::int64_t source, std::int64_t target) {
  Model model = build("seq2seq", "sockeye");
  LayerGraph& graph = model.graphs.at("main");
  std::vector<LayerSpec> layers;
  for (const GraphLayer& layer : graph.layers) layers.push_back(layer.spec);
  std::vector<GraphInput> inputs = graph.inputs;
  for (GraphInput& input : inputs) input.shape.dims = {input.name == "source" ? source : target};
  graph = build_layer_graph(std::move(inputs), std::move(layers), graph.outputs);
  return model;
}

// How often kernels of these operations run in an iteration.
std::int64_t runs(const TrainingStep& step, std::initializer_list<std::string_view> ops,
                  std::initializer_list<Phase> phases = {Phase::forward, Phase::backward_data,
                                                         Phase::backward_weights}) {
  const auto among = [](const auto& list, const auto& value) {
    return std::find(list.begin(), list.end(), value) != list.end();
  };
  std::int64_t count = 0;
  for (const Kernel& kernel : step.kernels) {
    if (among(ops, kernel.op) && among(phases, kernel.phase)) count += kernel.repeat;
  }
  return count;
}

// nvprof's counts of one training iteration of this network on a TITAN Xp (UofT-EcoSystem/sockeye
// b9e05a4ff901, workspace/results/profile/runtime, iwslt15-vi_en-tbd-runtime_profile-default.csv), MXNet a
// year newer. 82 LSTM cells, of which 20 x 2 are the decoder's and 14 x 3 the encoder's, tell its lengths: 14
// source and 20 target words.
TEST(Sockeye, KernelsOfAnIterationAreThoseOfAProfile) {
  const TrainingStep step = test::step_of(sockeye(14, 20), kMxnet);
  const auto forward = {Phase::forward};
  const auto backward = {Phase::backward_data, Phase::backward_weights};
  EXPECT_EQ(runs(step, {"sigmoid"}, forward), 246);
  EXPECT_EQ(runs(step, {"sigmoid"}, backward), 246);
  EXPECT_EQ(runs(step, {"tanh"}, forward), 208);
  EXPECT_EQ(runs(step, {"tanh"}, backward), 208);
  EXPECT_EQ(runs(step, {"sequence_reverse"}), 6);
  for (const Kernel& kernel : step.kernels) EXPECT_EQ(kernel.thread_per_row, kernel.op == "sequence_reverse");
  EXPECT_EQ(runs(step, {"broadcast_add"}), 20);
  EXPECT_EQ(runs(step, {"softmax"}, forward), 20);
  EXPECT_EQ(runs(step, {"softmax"}, backward), 20);
  EXPECT_EQ(runs(step, {"sequence_mask"}), 40);
  EXPECT_EQ(runs(step, {"embedding"}, forward), 2);
  EXPECT_EQ(runs(step, {"embedding"}, backward), 2);
  EXPECT_EQ(runs(step, {"bias_add"}), 188 + 1);        // MapPlan and MapPlanLarge of Broadcast1D
  EXPECT_EQ(runs(step, {"bias_gradient"}), 173 + 16);  // MapRedKeepLowest, plusto and saveto
  // Slices written and read: splits and joins of gates, steps and features, either way.
  EXPECT_EQ(runs(step, {"split", "unstack", "stack", "concat"}), 534 + 534);
  // An operation or two of MXNet's own around the network (164 + 1, 246 + 1), and what the first step of a
  // layer does not need: it has no state before it (243 of 246, 157 + 19 + 1 of 188).
  EXPECT_EQ(runs(step, {"add"}, forward), 165 - 1);
  EXPECT_EQ(runs(step, {"multiply"}, forward), 247 - 1);
  EXPECT_EQ(runs(step, {"multiply"}, backward), 243 + 246 + 3);
  EXPECT_EQ(runs(step, {"add", "gradient_sum"}, backward), 177 + 11);
}

// The attention keeps its hidden layer before and after tanh: 2 x 100 x 100 x 512 numbers of a sentence pair
// at the largest bucket, 41 MB; recomputed, nothing.
TEST(Sockeye, AttentionIsKeptOrRecomputed) {
  const Size kept = test::kept_for_backward(test::step_of(sockeye(100, 100), kMxnet));
  Model echo = build("seq2seq", "sockeye_echo");
  echo.variant.source_share = 1;
  echo = resized(echo, {{"sequence_length", 100}});
  const Size recomputed = test::kept_for_backward(test::step_of(echo, kMxnet));
  const std::int64_t hidden = 2 * 100 * 100 * 512 * 4;
  // Tensors that the recomputation reads: queries and keys, 100 x 512 each.
  EXPECT_EQ(kept.per_sample - recomputed.per_sample, hidden - 2 * 100 * 512 * 4);
}

// In the bucket of 20 sources have 14 words: nvprof's 3 x 14 + 2 x 20 cells, each of three sigmoids.
TEST(Sockeye, SourcesAreShorterThanTargets) {
  const TrainingStep step =
      test::step_of(resized(build("seq2seq", "sockeye"), {{"sequence_length", 20}}), kMxnet);
  EXPECT_EQ(runs(step, {"sigmoid"}, {Phase::forward}), 3 * (3 * 14 + 2 * 20));
}

TEST(Sockeye, LibraryCallsForTheEncoderOnly) {
  const TrainingStep step = test::step_of(build("seq2seq", "sockeye_cudnn"), kMxnet);
  EXPECT_EQ(runs(step, {"lstm"}), 3 * 3);
  EXPECT_EQ(runs(step, {"sigmoid"}, {Phase::forward}), 2 * 3 * 30);
  EXPECT_EQ(runs(step, {"sequence_reverse"}), 0);
  EXPECT_EQ(runs(step, {"parallel_sequence_reverse"}), 6);
  for (const Kernel& kernel : step.kernels) EXPECT_FALSE(kernel.thread_per_row);
}

// PyTorch runs the encoder's two layers in cuDNN, forward and two gradients each, and 25 steps of the
// decoder's.
TEST(Seq2SeqPyTorch, EncoderFusedDecoderUnrolled) {
  const TrainingStep step = test::step_of(build("seq2seq", "pytorch"), {.recurrence = Recurrence::fused,
                                                                        .cell_pointwise = Composition::fused,
                                                                        .joins = ConcatLowering::views});
  EXPECT_EQ(runs(step, {"lstm"}), 2 * 3);
  EXPECT_EQ(runs(step, {"lstm_cell"}), 2 * 2 * 25);
  EXPECT_EQ(runs(step, {"device_to_host"}), 0);
}

// MLPerf training v0.5 logs of the same code print 159,593,523 parameters with its vocabulary of 31,794
// words: each word has an embedding, and a row and a bias of the classifier.
TEST(Gnmt, ParametersOfPublishedLogs) {
  const ModelFile file = read_model_file(TBDSIM_SOURCE_DIR "/graphs/models/gnmt.yaml");
  const Model model = build_model(file, file.variants[0], {{"words", 31'794}});
  std::int64_t parameters = 0;
  for (const LayerSummary& layer : test::step_of(model).layers) parameters += layer.trained_parameters;
  EXPECT_EQ(parameters, 159'593'523);
}

// A bucket of 16 s has 785 steps. Each of 10 layers runs 44 kernels a step: forward 4 products with their
// biases, a norm, an addition, 2 slices, 3 activations, 6 operations more; back 3 kernels for each product,
// and 12 others. The layers on top and the steps' copies run 20. Stored are the kernels of one step.
TEST(DeepSpeech2, ThousandsOfStepsAreStoredAsPatterns) {
  const Model model = resized(build("deep_speech2", "mxnet"), {{"sequence_length", 1600}});
  const TrainingStep step = test::step_of(model, kMxnet);
  std::int64_t per_step = 0;
  std::int64_t all = 0;
  for (const Kernel& kernel : step.kernels) {
    all += kernel.repeat;
    if (kernel.repeat > 1) {
      EXPECT_EQ(kernel.repeat, 785);
      ++per_step;
    }
  }
  EXPECT_EQ(per_step, 10 * 44 + 20);
  EXPECT_GT(all, 345'000);
  EXPECT_LT(step.kernels.size(), 700u);
}

// Kept of each step, layer and direction: 11 vectors of 1760 units (gates before and after activation, the
// norm's input, n - h, r h and the state), 608 MB an utterance of 16 s.
TEST(DeepSpeech2, KeepsElevenVectorsOfEachStep) {
  const Model model = resized(build("deep_speech2", "mxnet"), {{"sequence_length", 1600}});
  const TrainingStep step = test::step_of(model, kMxnet);
  int last_forward = 0;
  for (std::size_t k = 0; k < step.kernels.size(); ++k) {
    if (step.kernels[k].phase == Phase::forward) last_forward = static_cast<int>(k);
  }
  Size kept;
  for (const Tensor& tensor : step.tensors) {
    const bool of_gru = tensor.layer >= 0 && step.layers[static_cast<std::size_t>(tensor.layer)].name.find(
                                                 "ward_l") != std::string::npos;
    if (of_gru && tensor.role == TensorRole::feature_map && tensor.last_use > last_forward)
      kept += tensor.bytes;
  }
  EXPECT_EQ(kept.per_sample, std::int64_t{10} * 785 * 11 * 1760 * 4);
}

// Norms keep moving statistics for each step: 785 x 2 x (10 x 3520 + 1760) numbers, 232 MB.
TEST(DeepSpeech2, StatisticsOfEachStep) {
  const Model model = resized(build("deep_speech2", "mxnet"), {{"sequence_length", 1600}});
  std::int64_t statistics = 0;
  for (const LayerSummary& layer : test::step_of(model, kMxnet).layers) {
    if (layer.name.rfind("conv", 0) != 0) statistics += layer.statistics;
  }
  EXPECT_EQ(statistics, 785 * 2 * (10 * 3520 + 1760));
}

}  // namespace
}  // namespace tbdsim
