// The end of an iteration: what each optimizer's update computes and moves.
#include <gmock/gmock.h>

#include "tests/graphs/model_fixture.h"

namespace tbdsim {
namespace {

using test::small_model;
using test::step_of;

std::vector<Kernel> updates_of(const TrainingStep& step) {
  std::vector<Kernel> found;
  for (const Kernel& kernel : step.kernels) {
    if (kernel.phase == Phase::update) found.push_back(kernel);
  }
  return found;
}

// 12 weights.
constexpr const char* kClassifier = "      - {name: fc, type: fully_connected, outputs: 3, bias: false}\n";

struct UpdateCase {
  const char* optimizer;
  std::int64_t flops, read, written;  // for each parameter
};
void PrintTo(const UpdateCase& update, std::ostream* out) { *out << update.optimizer; }

// Read: weight (4 B), state (4 B a word) and gradient (4 B); written: weight and state. LAMB reads
// five words more and writes one, the update (optimizer.h, also the operations).
class Updates : public testing::TestWithParam<UpdateCase> {};

TEST_P(Updates, WorkForEachParameter) {
  const TrainingStep step = step_of(small_model("[4]", kClassifier, GetParam().optimizer));
  const auto updates = updates_of(step);
  ASSERT_EQ(updates.size(), 1u);
  EXPECT_EQ(updates[0].op, GetParam().optimizer);
  EXPECT_EQ(updates[0].flops, fixed_size(12 * GetParam().flops));
  EXPECT_EQ(updates[0].read_bytes, fixed_size(12 * GetParam().read));
  EXPECT_EQ(updates[0].written_bytes, fixed_size(12 * GetParam().written));
}

INSTANTIATE_TEST_SUITE_P(Optimizers, Updates,
                         testing::Values(UpdateCase{"sgd", 2, 8, 4}, UpdateCase{"momentum", 4, 12, 8},
                                         UpdateCase{"momentum_decay", 6, 12, 8},
                                         UpdateCase{"nesterov", 6, 12, 8}, UpdateCase{"adam", 11, 16, 12},
                                         UpdateCase{"lamb", 20, 36, 16}, UpdateCase{"adagrad", 6, 12, 8},
                                         UpdateCase{"rowwise_adagrad", 6, 12, 8}));

// Words that the operators of PyTorch's loop read and write, for each parameter.
//   sgd       w.add_(g): 2 read, 1 written
//   momentum  v.mul_, v.add_(g), w.add_(v): 1 + 2 + 2, 3
//   decay     g' = g.add(w), v.mul_, v.add_(g'), w.add_(v): 2 + 1 + 2 + 2, 4
//   nesterov  v.mul_, v.add_(g), d = g.add(v), w.add_(d): 1 + 2 + 2 + 2, 4
//   adam      m.mul_, m.add_(g), v.mul_, v.addcmul_(g, g), d = v.sqrt(), d.add_, w.addcdiv_(m, d):
//             1 + 2 + 1 + 2 + 1 + 1 + 3, 7; 18 words in all
//   adagrad   s.addcmul_(g, g), d = s.sqrt(), d.add_, w.addcdiv_(g, d): 2 + 1 + 1 + 3, 4
//   adafactor norm(w), u = g * g, two means of u, 1 / sqrt of their product, times g, its norm, over that,
//             w.add_(u): 1 + 1 + 1 + 1 + 0 + 2 + 1 + 1 + 2, 5 of them written
struct LoopCase {
  const char* optimizer;
  std::vector<const char*> operators;
  std::int64_t read, written, temporary;  // words for each parameter
};
void PrintTo(const LoopCase& loop, std::ostream* out) { *out << loop.optimizer; }

class UpdateLoop : public testing::TestWithParam<LoopCase> {};

// 12 + 12 weights in two tensors: tensor by tensor in a for-loop, operator by operator under foreach.
TEST_P(UpdateLoop, OneKernelForEachOperator) {
  const auto& [optimizer, operators, read, written, temporary] = GetParam();
  const Model model = small_model("[4]",
                                  "      - {name: fc1, type: fully_connected, outputs: 3, bias: false}\n"
                                  "      - {name: fc2, type: fully_connected, outputs: 4, bias: false}\n",
                                  optimizer);
  const auto loop = updates_of(step_of(model, {.update = UpdateKernels::for_loop}));
  const auto foreach = updates_of(step_of(model, {.update = UpdateKernels::foreach}));
  ASSERT_EQ(loop.size(), 2 * operators.size());
  ASSERT_EQ(foreach.size(), operators.size());
  Size reads;
  Size writes;
  for (std::size_t k = 0; k < operators.size(); ++k) {
    EXPECT_EQ(loop[k].op, operators[k]);
    EXPECT_EQ(loop[k].layer, 0);
    EXPECT_EQ(loop[operators.size() + k].op, operators[k]);
    EXPECT_EQ(loop[operators.size() + k].layer, 1);
    EXPECT_EQ(loop[k].kind, KernelKind::update);
    EXPECT_EQ(loop[k].scratch_bytes, fixed_size(12 * temporary * 4));
    EXPECT_EQ(foreach[k].op, operators[k]);
    EXPECT_EQ(foreach[k].layer, -1);
    EXPECT_EQ(foreach[k].read_bytes, loop[k].read_bytes * 2);
    EXPECT_EQ(foreach[k].written_bytes, loop[k].written_bytes * 2);
    EXPECT_EQ(foreach[k].scratch_bytes, fixed_size(24 * temporary * 4));
    reads += loop[k].read_bytes;
    writes += loop[k].written_bytes;
  }
  EXPECT_EQ(reads, fixed_size(12 * read * 4));
  EXPECT_EQ(writes, fixed_size(12 * written * 4));
}

INSTANTIATE_TEST_SUITE_P(
    Optimizers, UpdateLoop,
    testing::Values(LoopCase{"sgd", {"add"}, 2, 1, 0}, LoopCase{"momentum", {"mul", "add", "add"}, 5, 3, 0},
                    LoopCase{"momentum_decay", {"add", "mul", "add", "add"}, 7, 4, 1},
                    LoopCase{"nesterov", {"mul", "add", "add", "add"}, 7, 4, 1},
                    LoopCase{"adam", {"mul", "add", "mul", "addcmul", "sqrt", "add", "addcdiv"}, 11, 7, 1},
                    LoopCase{"adagrad", {"addcmul", "sqrt", "add", "addcdiv"}, 7, 4, 1},
                    LoopCase{"adafactor",
                             {"norm", "square", "mean", "mean", "rsqrt_outer", "mul", "norm", "scale", "add"},
                             10,
                             5,
                             1}));

// 12 weights as a matrix of 3 x 4, X, and 3 biases. Of X: its momentum (gradient 4 B and state 4 B read;
// state and X in bf16 written), its norm, X over that; five times X X' (2 x 3 x 3 x 4 flop), A A (2 x 3 x 3 x
// 3) and B X (2 x 3 x 3 x 4); the weights. Of the biases: AdamW.
TEST(UpdateKernel, MuonMultipliesMatrices) {
  const TrainingStep step = step_of(
      small_model("[4]", "      - {name: fc, type: fully_connected, outputs: 3, bias: true}\n", "muon"));
  const auto updates = updates_of(step);
  ASSERT_EQ(updates.size(), 3u + 15 + 1 + 1);
  EXPECT_EQ(updates[0].op, "momentum");
  EXPECT_EQ(updates[0].read_bytes, fixed_size(12 * 8));
  EXPECT_EQ(updates[0].written_bytes, fixed_size(12 * 6));
  Size flops;
  for (const Kernel& kernel : updates) flops += kernel.op == "newton_schulz" ? kernel.flops : Size{};
  EXPECT_EQ(flops, fixed_size(5 * (72 + 54 + 72)));
  EXPECT_EQ(updates[18].op, "muon");
  EXPECT_EQ(updates[18].read_bytes, fixed_size(12 * (2 + 4)));
  EXPECT_EQ(updates[19].op, "adamw");
  EXPECT_EQ(updates[19].read_bytes, fixed_size(3 * 16));
  Size state;
  for (const Tensor& tensor : step.tensors)
    state += tensor.role == TensorRole::dynamic ? tensor.bytes : Size{};
  EXPECT_EQ(state, fixed_size(12 * 4 + 3 * 8));
}

// Adam on the host: 12 gradients go there, where weights and two states are read and written and the gradient
// is read, at 40 B/ns; 12 weights come back. No state is on the GPU.
TEST(UpdateKernel, TheHostMayUpdate) {
  Lowering lowering;
  lowering.optimizer_state = Variables::host;
  const TrainingStep step = step_of(small_model("[4]", kClassifier, "adam"), lowering);
  const auto updates = updates_of(step);
  ASSERT_EQ(updates.size(), 2u);
  EXPECT_EQ(updates[0].op, kDeviceToHost);
  EXPECT_EQ(updates[0].read_bytes, fixed_size(48));
  EXPECT_EQ(updates[0].host_nanoseconds, fixed_size(12 * 4 * (2 * 3 + 1) / 40));
  EXPECT_EQ(updates[1].op, kHostToDevice);
  EXPECT_EQ(updates[1].written_bytes, fixed_size(48));
  for (const Tensor& tensor : step.tensors) EXPECT_NE(tensor.role, TensorRole::dynamic);
}

TEST(UpdateKernel, NoOptimizerNoUpdate) {
  const TrainingStep step = step_of(small_model("[4]", kClassifier, "none"));
  EXPECT_TRUE(updates_of(step).empty());
  for (const Tensor& tensor : step.tensors) EXPECT_NE(tensor.role, TensorRole::dynamic);
}

// Parameters of the layers: conv 6 + 2, norm 2 + 2 (its moving statistics are not updated by the optimizer).
TEST(UpdateKernel, PerTensorOrFused) {
  const Model model =
      small_model("[3, 4, 4]",
                  "      - {name: conv, type: conv2d, filters: 2, kernel: 1, padding: 0, bias: true}\n"
                  "      - {name: bn, type: batch_norm}\n");
  EXPECT_EQ(updates_of(step_of(model)).size(), 4u);
  const auto fused = updates_of(step_of(model, {.update = UpdateKernels::fused}));
  ASSERT_EQ(fused.size(), 1u);
  EXPECT_EQ(fused[0].layer, -1);
  EXPECT_EQ(fused[0].flops, fixed_size(12 * 2));
  EXPECT_EQ(fused[0].read_bytes, fixed_size(12 * 8));
  EXPECT_EQ(fused[0].written_bytes, fixed_size(12 * 4));
}

// apex's FusedLAMB has kernels of its own over all tensors, whatever the framework's optimizers do.
TEST(UpdateKernel, LambIsFusedUnderEveryFramework) {
  const Model model = small_model("[4]",
                                  "      - {name: fc1, type: fully_connected, outputs: 3, bias: false}\n"
                                  "      - {name: fc2, type: fully_connected, outputs: 4, bias: false}\n",
                                  "lamb");
  const auto updates = updates_of(step_of(model, {.update = UpdateKernels::for_loop}));
  ASSERT_EQ(updates.size(), 1u);
  EXPECT_EQ(updates[0].layer, -1);
  EXPECT_EQ(updates[0].read_bytes, fixed_size(24 * 36));
}

// BertAdam: twelve operators for each tensor, 17 words read and 12 written in all, even where the framework
// fuses; FusedAdam under mixed precision: one kernel over all, even where it does not.
TEST(UpdateKernel, OfTheProgramItself) {
  const Model model = small_model("[4]",
                                  "      - {name: fc1, type: fully_connected, outputs: 3, bias: false}\n"
                                  "      - {name: fc2, type: fully_connected, outputs: 4, bias: false}\n",
                                  "bert_adam, mixed_optimizer: fused_adam");
  const auto updates = updates_of(step_of(model, {.update = UpdateKernels::fused}));
  std::vector<Kernel> single;
  std::copy_if(updates.begin(), updates.end(), std::back_inserter(single),
               [](const Kernel& kernel) { return kernel.op == "bert_adam"; });
  ASSERT_EQ(single.size(), 2u);
  EXPECT_EQ(single[0].kind, KernelKind::elementwise);
  EXPECT_EQ(single[0].repeat, 12);
  EXPECT_EQ(single[0].read_bytes, fixed_size(12 * 17 * 4 / 12));
  EXPECT_EQ(single[0].written_bytes, fixed_size(12 * 12 * 4 / 12));
  const auto mixed = updates_of(step_of(model, {.update = UpdateKernels::per_tensor}, kPrecisions[3]));
  ASSERT_EQ(mixed.size(), 1u);
  EXPECT_EQ(mixed[0].op, "fused_adam");
  EXPECT_EQ(mixed[0].read_bytes, fixed_size(24 * 16));
  EXPECT_EQ(mixed[0].written_bytes, fixed_size(24 * 12));
}

// BertAdam clips each gradient by its norm: the norm, four operations on one number, then either the host
// reads that number and waits, or the GPU multiplies all elements.
TEST(UpdateKernel, ClipsEachGradientOfTheProgramItself) {
  const Model model = small_model("[4]", kClassifier, "bert_adam");
  const auto ops = [&](ClipDecision decision) {
    std::vector<std::string> all;
    for (const Kernel& kernel : updates_of(step_of(model, {.clip_decision = decision})))
      all.emplace_back(kernel.op);
    return all;
  };
  EXPECT_THAT(ops(ClipDecision::host),
              testing::ElementsAre("gradient_norm", "clip_factor", kDeviceToHost, "bert_adam"));
  EXPECT_THAT(ops(ClipDecision::device),
              testing::ElementsAre("gradient_norm", "clip_factor", "clip", "bert_adam"));
  const auto kernels = updates_of(step_of(model, {.clip_decision = ClipDecision::host}));
  EXPECT_EQ(kernels[0].read_bytes, fixed_size(12 * 4));
  EXPECT_EQ(kernels[1].repeat, 4);
  EXPECT_TRUE(is_copy_to_host(kernels[2]));
}

Size state_bytes_of(const TrainingStep& step) {
  Size bytes;
  for (const Tensor& tensor : step.tensors) {
    if (tensor.role == TensorRole::dynamic) bytes += tensor.bytes;
  }
  return bytes;
}

// A table of 100 rows of 8, of which 4 are looked up for each sample: Adagrad keeps a word for each of its
// 800 numbers, or for each of its 100 rows; an update reads rows, gradients and states of 4 rows (3 x 128 B,
// or 2 x 128 B and 16 B of states) and writes rows and states.
TEST(Adagrad, KeepsSumsOfATableOrOfItsRows) {
  const char* table =
      "      - {name: t, type: embedding, words: 100, outputs: 8, sparse: true}\n"
      "      - {name: loss, type: mean_loss}\n";
  const TrainingStep all = step_of(small_model("[4]", table, "adagrad"));
  EXPECT_EQ(state_bytes_of(all), fixed_size(3200));
  ASSERT_EQ(updates_of(all).size(), 1u);
  EXPECT_EQ(updates_of(all)[0].read_bytes, (Size{0, 384}));
  EXPECT_EQ(updates_of(all)[0].written_bytes, (Size{0, 256}));
  const TrainingStep rows = step_of(small_model("[4]", table, "rowwise_adagrad"));
  EXPECT_EQ(state_bytes_of(rows), fixed_size(400));
  EXPECT_EQ(updates_of(rows)[0].read_bytes, (Size{0, 256 + 16}));
  EXPECT_EQ(updates_of(rows)[0].written_bytes, (Size{0, 128 + 16}));
}

}  // namespace
}  // namespace tbdsim
