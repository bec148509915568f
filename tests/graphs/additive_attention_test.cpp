// additive_score and weighted_sum: Bahdanau's attention for one query a step, and for a whole sequence of
// them.
#include <gmock/gmock.h>

#include "tests/graphs/layer_fixture.h"

namespace tbdsim {
namespace {

using test::LayerBench;
using test::per_sample;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

// Keys and memory of 6 positions, 10 wide; one query or 3.
const Shape kKeys{per_sample(1), {6, 10}};
const Shape kQuery = test::vector(10);
const Shape kQueries{per_sample(1), {3, 10}};

std::string ops_of(const std::vector<Kernel>& kernels) {
  std::string text;
  for (const Kernel& kernel : kernels) text += (text.empty() ? "" : ", ") + std::string(kernel.op);
  return text;
}

std::int64_t macs_of(const std::vector<Kernel>& kernels) {
  Size macs;
  for (const Kernel& kernel : kernels) macs += kernel.macs;
  return macs.per_sample;
}

LayerBench score(const std::string& keys, const Shape& query = kQuery) {
  return {"{type: additive_score" + keys + "}", {query, kKeys}};
}

// 6 positions x 10 numbers = 60 multiply-adds with v, and as many for either gradient. The hidden layer has
// 240 B.
TEST(AdditiveScore, OneQuery) {
  const LayerBench bench = score("");
  EXPECT_EQ(bench.output, test::vector(6));
  EXPECT_EQ(ops_of(bench.forward()), "broadcast_add, tanh, matmul");
  EXPECT_EQ(macs_of(bench.forward()), 60);
  EXPECT_EQ(bench.forward()[0].read_bytes, per_sample(40 + 240));
  EXPECT_EQ(bench.forward()[0].written_bytes, per_sample(240));
  EXPECT_EQ(std::get<GemmShape>(bench.forward()[2].shape),
            (GemmShape{.m = fixed_size(1), .n = per_sample(6), .k = fixed_size(10), .transpose_a = true}));
  // The keys' gradient adds to what the steps before left.
  EXPECT_EQ(ops_of(bench.backward()), "matmul, matmul, tanh, sum, accumulate");
  EXPECT_EQ(macs_of(bench.backward()), 120);
  EXPECT_EQ(bench.needs().extra_bytes, per_sample(240));
  EXPECT_FALSE(bench.needs().inputs);
  EXPECT_EQ(bench.layer->parameters(bench.inputs).size(), 1u);
}

// Where the step's gradients are added by kernels of their own the layer leaves that to them.
TEST(AdditiveScore, AddedGradients) {
  LayerBench bench = score("");
  bench.lowering.step_gradients = GradientAccumulation::added;
  EXPECT_EQ(ops_of(bench.backward()), "matmul, matmul, tanh, sum");
}

// 3 queries: three times the work, and the keys' gradient is a sum over the queries.
TEST(AdditiveScore, SeveralQueries) {
  const LayerBench bench = score("", kQueries);
  EXPECT_EQ(bench.output, (Shape{per_sample(1), {3, 6}}));
  EXPECT_EQ(macs_of(bench.forward()), 180);
  EXPECT_EQ(ops_of(bench.backward()), "matmul, matmul, tanh, sum, sum");
  EXPECT_EQ(bench.backward()[4].written_bytes, per_sample(240));
}

// TensorFlow's reduce_sum(v * tanh(...)): the same multiply-adds, counted once for each direction.
TEST(AdditiveScore, AsProductAndSum) {
  const LayerBench bench = score(", score: sum");
  EXPECT_EQ(ops_of(bench.forward()), "broadcast_add, tanh, multiply, sum");
  EXPECT_EQ(macs_of(bench.forward()), 60);
  EXPECT_EQ(ops_of(bench.backward()), "multiply, sum, multiply, tanh, sum, accumulate");
  EXPECT_EQ(macs_of(bench.backward()), 120);
}

TEST(AdditiveScore, Masks) {
  EXPECT_EQ(ops_of(score(", mask: select").forward()), "broadcast_add, tanh, matmul, select");
  EXPECT_EQ(ops_of(score(", mask: sequence_mask").forward()),
            "broadcast_add, tanh, matmul, transpose, copy, sequence_mask, transpose");
}

// v, a scale and a bias of the hidden layer: 10 + 1 + 10 parameters, and three small kernels each way.
TEST(AdditiveScore, Normalized) {
  const LayerBench bench = score(", normalize: true", kQueries);
  std::int64_t parameters = 0;
  for (const ParameterTensor& tensor : bench.layer->parameters(bench.inputs)) parameters += tensor.elements;
  EXPECT_EQ(parameters, 21);
  EXPECT_EQ(ops_of(bench.forward()), "norm, divide, multiply, broadcast_add, bias_add, tanh, matmul");
  EXPECT_EQ(ops_of(bench.backward()), "matmul, matmul, tanh, sum, norm, divide, multiply, sum, sum");
}

// Kept are the hidden layer before and after tanh, where activations keep both; or nothing, and it is made
// again from query and keys.
TEST(AdditiveScore, KeepsOrRecomputes) {
  LayerBench bench = score("");
  bench.lowering.relu_keeps = ReluKeeps::input_and_output;
  EXPECT_EQ(bench.needs().extra_bytes, per_sample(480));
  LayerBench again = score(", recompute: true");
  again.lowering.relu_keeps = ReluKeeps::input_and_output;
  EXPECT_EQ(again.needs().extra_bytes, Size{});
  EXPECT_TRUE(again.needs().inputs);
  EXPECT_EQ(ops_of(again.backward()), "broadcast_add, tanh, matmul, matmul, tanh, sum, accumulate");
}

TEST(AdditiveScore, WantsOneWidth) {
  const auto layer = test::make_layer("{type: additive_score}");
  const std::vector<Shape> different{test::vector(9), kKeys};
  EXPECT_THAT([&] { (void)layer->output_shape(different); },
              ThrowsMessage<ShapeMismatch>(HasSubstr("inputs have shapes 9 and 6x10; expected a query")));
}

// Weights of 6 positions and the memory of 6 x 10 numbers: 60 multiply-adds; the gradient of the weights and
// that of the memory as many. The memory's 240 B are added to where they are.
TEST(WeightedSum, OneQuery) {
  LayerBench bench{"{type: weighted_sum}", {test::vector(6), kKeys}};
  EXPECT_EQ(bench.output, test::vector(10));
  const auto forward = bench.forward();
  ASSERT_EQ(forward.size(), 1u);
  EXPECT_EQ(forward[0].op, "batched_matmul");
  EXPECT_EQ(forward[0].macs, per_sample(60));
  EXPECT_EQ(forward[0].read_bytes, per_sample(24 + 240));
  EXPECT_EQ(forward[0].written_bytes, per_sample(40));
  EXPECT_EQ(std::get<GemmShape>(forward[0].shape),
            (GemmShape{.m = fixed_size(10), .n = fixed_size(1), .k = fixed_size(6), .batch = per_sample(1)}));
  ASSERT_EQ(bench.backward().size(), 2u);
  EXPECT_EQ(macs_of(bench.backward()), 120);
  EXPECT_EQ(bench.backward()[1].read_bytes, per_sample(24 + 40 + 240));
  bench.lowering.step_gradients = GradientAccumulation::added;
  EXPECT_EQ(bench.backward()[1].read_bytes, per_sample(24 + 40));
}

TEST(WeightedSum, SeveralQueries) {
  const LayerBench bench{"{type: weighted_sum}", {{per_sample(1), {3, 6}}, kKeys}};
  EXPECT_EQ(bench.output, kQueries);
  EXPECT_EQ(macs_of(bench.forward()), 180);
  EXPECT_EQ(bench.backward()[1].read_bytes, per_sample(72 + 120));
  const std::vector<Shape> different{test::vector(5), kKeys};
  EXPECT_THAT([&] { (void)bench.layer->output_shape(different); },
              ThrowsMessage<ShapeMismatch>(HasSubstr("expected weights of positions")));
}

}  // namespace
}  // namespace tbdsim
