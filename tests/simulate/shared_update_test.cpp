// Updates that ranks share among them (ZeRO-1): the time of each rank's share.
#include <algorithm>
#include <string>

#include <gtest/gtest.h>

#include "simulate/prediction/predict.h"
#include "simulate/prediction/repredict.h"
#include "tests/support/cli.h"

namespace tbdsim {
namespace {

// BERT-large on eight GPUs of a machine, with gradients exchanged by `method`.
Scenario bert_on_eight(const std::string& gpu, std::int64_t batch, const std::string& method) {
  Scenario scenario{.model = "bert_large", .framework = "pytorch_mlperf", .gpu = gpu, .batch = batch};
  scenario.variant = "mlperf";
  scenario.precision = "amp";
  scenario.cluster = {.gpus = 8, .method = method};
  return scenario;
}

// Each of eight ranks updates an eighth: of a step that the GPU bounds as much time is left out as seven
// eighths of the update's kernels take, their launches aside.
TEST(DataParallel, RanksThatShareTheUpdateTakeTheirShareOfItsTime) {
  SpecCache specs = test::source_specs();
  const Prediction whole = predict(bert_on_eight("a100_sxm_80gb", 8, "all_reduce"), specs);
  const Prediction shared = predict(bert_on_eight("a100_sxm_80gb", 8, "zero1"), specs);
  const Iteration& iteration = whole.iterations.at(0);
  Seconds saved(0);
  for (std::size_t k = 0; k < iteration.costs.size(); ++k) {
    const KernelCost& cost = iteration.costs[k];
    if (iteration.step->kernels[k].phase == Phase::update)
      saved += cost.total - std::max(cost.total * 0.125, cost.overhead);
  }
  ASSERT_GT(saved, iteration.timeline.iteration * 0.05);
  const Seconds left_out = iteration.timeline.iteration - shared.iterations.at(0).timeline.iteration;
  EXPECT_NEAR(left_out / saved, 1, 0.01);
}

// The costs of kernels are those of the timeline: one after another they never take longer than the
// iteration. They are whole again among ranks that do not share the update, and on other hardware.
TEST(DataParallel, CostsOfASharedUpdateAreThoseOfTheTimeline) {
  SpecCache specs = test::source_specs();
  const Prediction whole = predict(bert_on_eight("l4", 4, "all_reduce"), specs);
  const Prediction shared = predict(bert_on_eight("l4", 4, "zero1"), specs);
  const auto busy = [](const Prediction& p) {
    Seconds sum(0);
    for (const KernelCost& cost : p.iterations.at(0).costs) sum += cost.total;
    return sum;
  };
  EXPECT_LE(busy(shared), shared.iterations.at(0).timeline.iteration * (1 + 1e-9));
  EXPECT_LT(busy(shared), busy(whole));
  const Prediction again = with_rates(shared, shared.gpu);
  EXPECT_NEAR(busy(again) / busy(shared), 1, 1e-12);
  EXPECT_NEAR(again.iteration_time() / shared.iteration_time(), 1, 1e-12);
  const Prediction alone = with_cluster(shared, Cluster{}, std::nullopt, shared.cores);
  EXPECT_NEAR(busy(alone) / busy(whole), 1, 1e-12);
}

}  // namespace
}  // namespace tbdsim
