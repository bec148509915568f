// Recurrences that do not wait for each other: of layers connected by hand, and of models.
#include "graphs/independent_chains.h"

#include <gmock/gmock.h>

#include "tests/graphs/model_fixture.h"

namespace tbdsim {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

MATCHER_P3(Chains, first, second, end, "") {
  return arg.first == first && arg.second == second && arg.end == end;
}

// Layers by what they read, and which of them are recurrences.
std::vector<IndependentChains> chains_of(const std::vector<std::vector<int>>& inputs,
                                         const std::vector<int>& recurrences) {
  LayerGraph graph;
  graph.layers.resize(inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) graph.layers[i].inputs = inputs[i];
  std::vector<bool> recurrent(inputs.size(), false);
  for (const int i : recurrences) recurrent[static_cast<std::size_t>(i)] = true;
  return independent_chains(graph, recurrent);
}

// 0 is read by the recurrence 1, which 2 follows, and by 3, which the recurrence 4 and 5 follow; 6 joins 2
// and 5, and the recurrence 7 waits for all.
TEST(IndependentChains, AreTheTwoDirectionsOfALayer) {
  EXPECT_THAT(chains_of({{-1}, {0}, {1}, {0}, {3}, {4}, {2, 5}, {6}}, {1, 4, 7}),
              ElementsAre(Chains(1, 3, 6)));
}

// Recurrences 1 and 2 in a row, 3 and 4 in a row, joined by 5; then the same again.
TEST(IndependentChains, AreAsLongAsTheyCanBe) {
  EXPECT_THAT(
      chains_of({{-1}, {0}, {1}, {0}, {3}, {2, 4}, {5}, {6}, {5}, {8}, {7, 9}}, {1, 2, 3, 4, 6, 7, 8, 9}),
      ElementsAre(Chains(1, 3, 5), Chains(6, 8, 10)));
}

TEST(IndependentChains, AreNoneWhereOneWaitsForTheOther) {
  EXPECT_THAT(chains_of({{-1}, {0}, {1}, {2}}, {1, 3}), IsEmpty());
  EXPECT_THAT(chains_of({{-1}, {0}, {0}}, {1}), IsEmpty());  // the other branch has no recurrence
}

// 4 waits for 2, behind which 3 waits for both 1 and 2: as they stand they are not apart.
TEST(IndependentChains, AreNoneWhereWhatLiesBetweenWaitsForBoth) {
  EXPECT_THAT(chains_of({{-1}, {0}, {0}, {1, 2}, {2}}, {1, 4}), IsEmpty());
}

std::vector<std::string> layers_of(const TrainingStep& step, int first, int end) {
  std::vector<std::string> names;
  for (int k = first; k < end; ++k) {
    const Kernel& kernel = step.kernels[static_cast<std::size_t>(k)];
    const std::string& name = step.layers[static_cast<std::size_t>(kernel.layer)].name;
    if (names.empty() || names.back() != name) names.push_back(name);
  }
  return names;
}

// The two stacks of Deep Speech 2 forward, and the other way round backward.
TEST(IndependentChains, AreOfKernels) {
  const ModelFile file = read_model_file(TBDSIM_SOURCE_DIR "/graphs/models/deep_speech2.yaml");
  const TrainingStep step =
      test::step_of(build_model(file, find_variant(file, "mxnet", "")), {.joins = ConcatLowering::parts});
  ASSERT_EQ(step.chains.size(), 2u);
  const auto ends = [&](int first, int end) {
    const std::vector<std::string> names = layers_of(step, first, end);
    return std::pair(names.front(), names.back());
  };
  const IndependentChains& forward = step.chains[0];
  EXPECT_THAT(ends(forward.first, forward.second), Pair("forward_l0_gates_i2h", "forward_l4"));
  EXPECT_THAT(ends(forward.second, forward.end), Pair("backward_l0_gates_i2h", "backward_l4"));
  const IndependentChains& backward = step.chains[1];
  EXPECT_THAT(ends(backward.first, backward.second), Pair("backward_l4", "backward_l0_gates_i2h"));
  EXPECT_THAT(ends(backward.second, backward.end), Pair("forward_l4", "forward_l0_gates_i2h"));
}

// Sockeye has one pair: the two directions of the encoder's first layer; other layers that run step by step
// are none.
TEST(IndependentChains, HoldRecurrences) {
  const ModelFile file = read_model_file(TBDSIM_SOURCE_DIR "/graphs/models/seq2seq.yaml");
  const TrainingStep step = test::step_of(build_model(file, find_variant(file, "sockeye", "")), {});
  ASSERT_EQ(step.chains.size(), 2u);
  const auto names = layers_of(step, step.chains[0].first, step.chains[0].end);
  EXPECT_EQ(names.front(), "encoder_birnn_fwd_inputs");
  EXPECT_EQ(names.back(), "encoder_birnn_restore");
}

// A library's call is a kernel: nothing of it runs step by step.
TEST(IndependentChains, AreNoneOfFusedRecurrences) {
  const ModelFile file = read_model_file(TBDSIM_SOURCE_DIR "/graphs/models/deep_speech2.yaml");
  const Lowering fused{.recurrence = Recurrence::fused};
  EXPECT_THAT(test::step_of(build_model(file, find_variant(file, "pytorch", "")), fused).chains, IsEmpty());
}

}  // namespace
}  // namespace tbdsim
