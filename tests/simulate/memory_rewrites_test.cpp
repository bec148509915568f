// Steps with less memory and more work, put together by hand.
#include <algorithm>

#include <gmock/gmock.h>

#include "graphs/rewrites/half_precision_activations.h"
#include "graphs/rewrites/offload.h"
#include "graphs/rewrites/recompute.h"
#include "simulate/memory/memory_plan.h"

namespace tbdsim {
namespace {

// A chain of `layers`: a forward kernel each, which reads the map before, then a backward kernel each in
// reverse, which reads the layer's map again. Maps of 100 b.
TrainingStep chain(int layers) {
  TrainingStep step;
  step.layers.resize(static_cast<std::size_t>(layers));
  const auto add_kernel = [&](int layer, Phase phase) {
    Kernel kernel;
    kernel.layer = layer;
    kernel.phase = phase;
    step.kernels.push_back(kernel);
  };
  for (int i = 0; i < layers; ++i) add_kernel(i, Phase::forward);
  for (int i = layers; i-- > 0;) add_kernel(i, Phase::backward_data);
  for (int i = 0; i < layers; ++i) {
    const int again = 2 * layers - 1 - i;
    step.tensors.push_back({.role = TensorRole::feature_map,
                            .layer = i,
                            .bytes = {0, 100},
                            .first_use = i,
                            .last_use = again,
                            .last_forward = std::min(i + 1, layers - 1),
                            .first_again = again});
  }
  return step;
}

double peak(const TrainingStep& step) {
  const std::vector<KernelCost> costs(step.kernels.size());
  return plan_memory(memory_outline(step), step, costs, 1, Framework{}).model().si();
}

// 16 maps in 4 segments: the first three run again, 12 kernels. Most is alive when a segment was made again:
// its own four maps, and what the segments before start from.
TEST(Recomputation, KeepsEndsOfSegments) {
  const TrainingStep step = chain(16);
  EXPECT_EQ(peak(step), 1600);
  const auto made = with_recomputation(step);
  ASSERT_TRUE(made);
  EXPECT_EQ(made->kernels.size(), step.kernels.size() + 12);
  EXPECT_LE(peak(*made), 800);
  EXPECT_GE(peak(*made), 600);
}

TEST(Recomputation, EveryTensorLivesForwards) {
  const auto made = with_recomputation(chain(25));
  ASSERT_TRUE(made);
  for (const Tensor& tensor : made->tensors) {
    EXPECT_GE(tensor.first_use, 0);
    EXPECT_LE(tensor.first_use, tensor.last_use);
    EXPECT_LT(tensor.last_use, static_cast<int>(made->kernels.size()));
  }
  // A copy is the same work as an earlier kernel.
  for (std::size_t k = 0; k < made->kernels.size(); ++k)
    EXPECT_LT(made->kernels[k].duplicate_of, static_cast<int>(k));
}

TEST(Recomputation, NoneWherePassesAlternate) {
  TrainingStep step = chain(4);
  step.kernels.push_back(step.kernels.front());  // forward again
  EXPECT_FALSE(with_recomputation(step));
  EXPECT_FALSE(with_recomputation(chain(1)));
}

// Two kernels for each map; idle maps in half the bytes.
TEST(HalfPrecisionMaps, TakeHalf) {
  const TrainingStep made = with_half_precision_activations(chain(16));
  EXPECT_EQ(made.kernels.size(), 32u + 2 * 16);
  EXPECT_LE(peak(made), 1000);
  EXPECT_GE(peak(made), 800);
}

// Chains begin and end with the kernels they did.
TEST(HalfPrecisionMaps, LeaveChainsInPlace) {
  TrainingStep step = chain(4);
  step.chains = {{0, 1, 3}, {5, 7, 8}};
  const TrainingStep made = with_half_precision_activations(step);
  ASSERT_EQ(made.chains.size(), 2u);
  const auto is = [&](int k, int layer, Phase phase) {
    const Kernel& kernel = made.kernels.at(static_cast<std::size_t>(k));
    return kernel.layer == layer && kernel.phase == phase && kernel.op.empty();
  };
  EXPECT_TRUE(is(made.chains[0].first, 0, Phase::forward));
  EXPECT_TRUE(is(made.chains[0].second, 1, Phase::forward));
  EXPECT_TRUE(is(made.chains[0].end, 3, Phase::forward));
  EXPECT_TRUE(is(made.chains[1].first, 2, Phase::backward_data));
  EXPECT_TRUE(is(made.chains[1].second, 0, Phase::backward_data));
  EXPECT_EQ(made.chains[1].end, static_cast<int>(made.kernels.size()));
}

TEST(HalfPrecisionMaps, LeaveWhatIsHalfAlready) {
  TrainingStep step = chain(4);
  for (Kernel& kernel : step.kernels) kernel.element_bytes = 2;
  EXPECT_EQ(with_half_precision_activations(step).kernels.size(), step.kernels.size());
}

// Maps in use, the one on its way out and the one on its way in.
TEST(MapsOnHost, OnlyThoseInUseStay) {
  EXPECT_LE(peak(with_offloaded_activations(chain(16))), 400);
  EXPECT_EQ(with_offloaded_activations(chain(16)).kernels.size(), 32u);
}

// A tensor of a recurrence is on the device one piece (time step) at a time.
TEST(MapsOnHost, PieceByPiece) {
  TrainingStep step = chain(2);
  for (Tensor& tensor : step.tensors) tensor.pieces = 10;
  EXPECT_LE(peak(with_offloaded_activations(step)), 2 * 100 + 10);
}

}  // namespace
}  // namespace tbdsim
