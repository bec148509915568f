// Layers of attention models: products of queries, keys and values, and what stands between them.
#include <gmock/gmock.h>

#include "tests/graphs/work_fixture.h"

namespace tbdsim {
namespace {

using test::LayerBench;
using test::moving;
using test::per_sample;
using test::Traffic;
using test::traffic_of;
using test::Work;
using test::works_of;
using testing::ElementsAre;
using testing::IsEmpty;

Shape shape(std::vector<std::int64_t> dims) { return {per_sample(1), std::move(dims)}; }

// 2 heads, 3 queries, 4 keys and 5 features: queries 30 elements (120 B), keys and values 40 (160 B), scores
// 24 (96 B).
const Shape kQueries = shape({2, 3, 5});
const Shape kKeys = shape({2, 4, 5});
const Shape kScores = shape({2, 3, 4});

Work product(Phase phase, std::int64_t read, std::int64_t written) {
  return {"batched_matmul", KernelKind::gemm,    phase, per_sample(240), per_sample(120),
          per_sample(read), per_sample(written), {}};
}

GemmShape gemm(std::int64_t m, std::int64_t n, std::int64_t k, bool transpose_a, bool transpose_b) {
  return {fixed_size(m), fixed_size(n), fixed_size(k), per_sample(2), transpose_a, transpose_b};
}

std::vector<GemmShape> gemms_of(const std::vector<Kernel>& kernels) {
  std::vector<GemmShape> shapes;
  for (const Kernel& kernel : kernels) shapes.push_back(std::get<GemmShape>(kernel.shape));
  return shapes;
}

// 2 heads x 3 x 4 x 5 = 120 multiply-adds, 240 operations. S = Q K' row-major is S' = K Q' column-major: K is
// stored as K', so m = 4 keys, n = 3 queries, k = 5 with A transposed. dQ = dS K: dQ' = K' dS', 5 x 3 over 4
// keys, as stored. dK = dS' Q: dK' = Q' dS, 5 x 4 over 3 queries, dS stored as dS'.
TEST(AttentionScores, ProductsOfEachPhase) {
  const LayerBench bench{"{type: attention_scores}", {kQueries, kKeys}};
  EXPECT_EQ(bench.output, kScores);
  EXPECT_THAT(works_of(bench.forward()), ElementsAre(product(Phase::forward, 280, 96)));
  EXPECT_THAT(works_of(bench.backward()), ElementsAre(product(Phase::backward_data, 96 + 160, 120),
                                                      product(Phase::backward_data, 96 + 120, 160)));
  EXPECT_THAT(gemms_of(bench.forward()), ElementsAre(gemm(4, 3, 5, true, false)));
  EXPECT_THAT(gemms_of(bench.backward()),
              ElementsAre(gemm(5, 3, 4, false, false), gemm(5, 4, 3, false, true)));
  EXPECT_TRUE(bench.needs().inputs);
}

// C = P V: C' = V' P', 5 x 3 over 4 keys, as stored. dP = dC V': dP' = V dC', 4 x 3 over 5 features, V stored
// as V'. dV = P' dC: dV' = dC' P, 5 x 4 over 3 queries, P stored as P'.
TEST(AttentionContext, ProductsOfEachPhase) {
  LayerBench bench{"{type: attention_context}", {kScores, kKeys}};
  EXPECT_EQ(bench.output, kQueries);
  EXPECT_THAT(works_of(bench.forward()), ElementsAre(product(Phase::forward, 96 + 160, 120)));
  EXPECT_THAT(works_of(bench.backward()), ElementsAre(product(Phase::backward_data, 280, 96),
                                                      product(Phase::backward_data, 96 + 120, 160)));
  EXPECT_THAT(gemms_of(bench.forward()), ElementsAre(gemm(5, 3, 4, false, false)));
  EXPECT_THAT(gemms_of(bench.backward()),
              ElementsAre(gemm(4, 3, 5, true, false), gemm(5, 4, 3, false, true)));
  EXPECT_TRUE(bench.needs().inputs);
  bench.input_gradient = false;
  EXPECT_THAT(bench.backward(), IsEmpty());
  EXPECT_FALSE(bench.needs().inputs);
}

TEST(AttentionProducts, WantMatchingHeads) {
  const auto scores = test::make_layer("{type: attention_scores}");
  const auto context = test::make_layer("{type: attention_context}");
  const std::vector<Shape> other_features{kQueries, shape({2, 4, 6})};
  const std::vector<Shape> other_heads{kQueries, shape({3, 4, 5})};
  const std::vector<Shape> other_keys{kScores, shape({2, 3, 5})};
  const std::vector<Shape> flat{kQueries, shape({4, 10})};
  EXPECT_THROW((void)scores->output_shape(other_features), ShapeMismatch);
  EXPECT_THROW((void)scores->output_shape(other_heads), ShapeMismatch);
  EXPECT_THROW((void)scores->output_shape(flat), ShapeMismatch);
  EXPECT_THROW((void)context->output_shape(other_keys), ShapeMismatch);
}

Work transposed(Phase phase, std::int64_t bytes) {
  return moving("transpose", KernelKind::transpose, phase, 0, per_sample(bytes), per_sample(bytes));
}

// 3 positions of 10 features, 120 B, become 2 heads of 3 positions of 5 and go back.
TEST(Heads, SplitAndMergedByCopies) {
  const LayerBench split{"{type: split_heads, heads: 2}", {shape({3, 10})}};
  EXPECT_EQ(split.output, kQueries);
  EXPECT_THAT(works_of(split.forward()), ElementsAre(transposed(Phase::forward, 120)));
  EXPECT_THAT(works_of(split.backward()), ElementsAre(transposed(Phase::backward_data, 120)));
  const LayerBench merge{"{type: merge_heads}", {kQueries}};
  EXPECT_EQ(merge.output, shape({3, 10}));
  EXPECT_THAT(works_of(merge.forward()), ElementsAre(transposed(Phase::forward, 120)));
  EXPECT_THAT(works_of(merge.backward()), ElementsAre(transposed(Phase::backward_data, 120)));
}

// A third of 30 features is read.
TEST(Heads, SplitReadsItsPart) {
  const LayerBench split{"{type: split_heads, heads: 2, parts: 3}", {shape({3, 30})}};
  EXPECT_EQ(split.output, kQueries);
  EXPECT_EQ(split.layer->parts(), 3);
  EXPECT_THAT(works_of(split.forward()), ElementsAre(transposed(Phase::forward, 120)));
}

TEST(Heads, WantSequences) {
  const auto split = test::make_layer("{type: split_heads, heads: 2, parts: 3}");
  const auto merge = test::make_layer("{type: merge_heads}");
  const std::vector<Shape> odd{shape({3, 10})};
  const std::vector<Shape> heads{kQueries};
  EXPECT_THROW((void)split->output_shape(odd), ShapeMismatch);
  EXPECT_THROW((void)split->output_shape(heads), ShapeMismatch);
  EXPECT_THROW((void)merge->output_shape(odd), ShapeMismatch);
}

TEST(Transpose, TwoDimensions) {
  const LayerBench bench{"{type: transpose}", {shape({3, 10})}};
  EXPECT_EQ(bench.output, shape({10, 3}));
  EXPECT_THAT(works_of(bench.forward()), ElementsAre(transposed(Phase::forward, 120)));
}

// ShuffleNet's shuffle: 6 channels of 2 x 2 pixels, 96 B, in 2 groups of 3.
TEST(Transpose, AnyOrder) {
  const LayerBench bench{"{type: transpose, order: [1, 0, 2, 3]}", {shape({2, 3, 2, 2})}};
  EXPECT_EQ(bench.output, shape({3, 2, 2, 2}));
  EXPECT_THAT(works_of(bench.backward()), ElementsAre(transposed(Phase::backward_data, 96)));
  const std::vector<Shape> flat{shape({3, 10})};
  EXPECT_THROW((void)bench.layer->output_shape(flat), ShapeMismatch);
  for (const char* order : {"[1, 1]", "[0, 2]", "[0, 9]", "7"})
    EXPECT_THROW((void)test::make_layer("{type: transpose, order: " + std::string(order) + "}"), SpecError)
        << order;
}

// Scores of 96 B and a mask for 4 keys of each sample (16 B), or for 3 x 4 queries and keys of all (48 B).
TEST(AttentionMask, ReadsItsMask) {
  const LayerBench padding{"{type: attention_mask}", {kScores}};
  EXPECT_THAT(works_of(padding.forward()),
              ElementsAre(moving("attention_mask", KernelKind::elementwise, Phase::forward, 24,
                                 per_sample(96 + 16), per_sample(96))));
  EXPECT_THAT(padding.backward(), IsEmpty());
  EXPECT_TRUE(padding.layer->passes_gradient_through());
  const LayerBench causal{"{type: attention_mask, causal: true}", {kScores}};
  EXPECT_EQ(causal.forward()[0].read_bytes, (Size{48, 96}));
}

// 3 x 10 values of 4 B for all samples.
TEST(AddPositions, ReadsThemOnce) {
  const LayerBench bench{"{type: add_positions}", {shape({3, 10})}};
  EXPECT_EQ(bench.forward()[0].read_bytes, (Size{120, 120}));
  EXPECT_EQ(bench.forward()[0].written_bytes, per_sample(120));
  EXPECT_THAT(bench.backward(), IsEmpty());
  EXPECT_THAT(bench.layer->parameters(bench.inputs), IsEmpty());
}

// 10 features of 4 B are added to 3 positions; their gradient is the sum over positions.
TEST(Bias, OfFeatures) {
  LayerBench bench{"{type: bias}", {shape({3, 10})}};
  ASSERT_EQ(bench.layer->parameters(bench.inputs).size(), 1u);
  EXPECT_EQ(bench.layer->parameters(bench.inputs)[0].elements, 10);
  EXPECT_THAT(works_of(bench.forward()), ElementsAre(moving("bias_add", KernelKind::elementwise,
                                                            Phase::forward, 30, {40, 120}, per_sample(120))));
  EXPECT_THAT(works_of(bench.backward()),
              ElementsAre(moving("bias_gradient", KernelKind::reduction, Phase::backward_weights, 30,
                                 per_sample(120), fixed_size(40))));
  bench.weight_gradient = false;
  EXPECT_THAT(bench.backward(), IsEmpty());
}

// PyTorch computes the address of each number where an operand is smaller than the result.
TEST(Bias, AddedOneNumberAtATimeByPyTorch) {
  for (const char* layer : {"{type: bias}", "{type: fully_connected, outputs: 4, per_position: true}"}) {
    LayerBench bench{layer, {shape({3, 10})}};
    EXPECT_EQ(bench.forward().back().access, Access::vectors) << layer;
    bench.lowering.aten_kernels = true;
    EXPECT_EQ(bench.forward().back().op, "bias_add") << layer;
    EXPECT_EQ(bench.forward().back().access, Access::elements) << layer;
  }
}

// A row of a table of 7 rows of 10 features: 70 parameters, one row of gradient.
TEST(AddEmbedding, OneRowForAll) {
  const LayerBench bench{"{type: add_embedding, words: 7}", {shape({3, 10})}};
  ASSERT_EQ(bench.layer->parameters(bench.inputs).size(), 1u);
  EXPECT_EQ(bench.layer->parameters(bench.inputs)[0].elements, 70);
  EXPECT_EQ(bench.layer->parameters(bench.inputs)[0].gradient_rows, fixed_size(10));
  EXPECT_EQ(traffic_of(bench.forward()), (Traffic{1, {40, 120}, per_sample(120)}));
  EXPECT_EQ(traffic_of(bench.backward()), (Traffic{1, per_sample(120), fixed_size(40)}));
}

// 2 of 3 positions of 10 features are read (80 B and 2 indices of 4 B) and written; backward all 120 B are
// zeroed first. The first positions are a view.
TEST(Positions, SelectedAndPlaced) {
  const LayerBench select{"{type: select_positions, count: 2}", {shape({3, 10})}};
  EXPECT_EQ(select.output, shape({2, 10}));
  EXPECT_EQ(traffic_of(select.forward()), (Traffic{1, per_sample(88), per_sample(80)}));
  EXPECT_EQ(traffic_of(select.backward()), (Traffic{2, per_sample(88), per_sample(120 + 80)}));
  const LayerBench first{"{type: select_positions, count: 2, first: true}", {shape({3, 10})}};
  EXPECT_TRUE(first.forward().empty());
  EXPECT_EQ(traffic_of(first.backward()), traffic_of(select.backward()));
  const LayerBench all{"{type: select_positions}", {shape({3, 10})}};
  EXPECT_EQ(all.output, shape({3, 10}));
  const LayerBench place{"{type: place_positions}", {shape({3, 10})}};
  EXPECT_EQ(traffic_of(place.forward()), (Traffic{2, per_sample(132), per_sample(240)}));
  EXPECT_EQ(traffic_of(place.backward()), (Traffic{1, per_sample(132), per_sample(120)}));
  const std::vector<Shape> short_one{shape({1, 10})};
  EXPECT_THROW((void)select.layer->output_shape(short_one), ShapeMismatch);
}

TEST(Positions, ShiftedAndCopied) {
  const LayerBench shift{"{type: shift_positions}", {shape({3, 10})}};
  EXPECT_EQ(traffic_of(shift.forward()), (Traffic{1, per_sample(120), per_sample(120)}));
  EXPECT_EQ(traffic_of(shift.backward()), (Traffic{1, per_sample(120), per_sample(120)}));
  const LayerBench copy{"{type: copy}", {shape({3, 10})}};
  EXPECT_EQ(traffic_of(copy.forward()), (Traffic{1, per_sample(120), per_sample(120)}));
  EXPECT_THAT(copy.backward(), IsEmpty());
  EXPECT_TRUE(copy.layer->passes_gradient_through());
}

}  // namespace
}  // namespace tbdsim
