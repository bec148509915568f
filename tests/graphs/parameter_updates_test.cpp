// Updates of parameters and the kernels they come after, by hand.
#include "graphs/parameter_updates.h"

#include <gmock/gmock.h>

namespace tbdsim {
namespace {

using testing::ElementsAre;

Kernel kernel_of(int layer, Phase phase, KernelKind kind = KernelKind::elementwise) {
  Kernel kernel;
  kernel.layer = layer;
  kernel.phase = phase;
  kernel.kind = kind;
  return kernel;
}

std::vector<std::pair<int, int>> updates_of(std::vector<Kernel> kernels) {
  TrainingStep step;
  step.layers.resize(2);
  step.kernels = std::move(kernels);
  std::vector<std::pair<int, int>> updates;
  for (const ParameterUpdate& update : parameter_updates(step))
    updates.emplace_back(update.kernel, update.after);
  return updates;
}

// Forward 0, 1, backward 1, 0: layer 1 is through first. A copy to the host updates nothing.
TEST(ParameterUpdates, AreReadyAfterTheirLayer) {
  EXPECT_THAT(updates_of({kernel_of(0, Phase::forward), kernel_of(1, Phase::forward),
                          kernel_of(1, Phase::backward_weights), kernel_of(0, Phase::backward_weights),
                          kernel_of(0, Phase::update, KernelKind::update),
                          kernel_of(1, Phase::update, KernelKind::update), kernel_of(0, Phase::update),
                          kernel_of(1, Phase::update, KernelKind::transfer)}),
              ElementsAre(std::pair(5, 2), std::pair(4, 3), std::pair(6, 3)));
}

// Kernels over the gradients of all layers come before every update.
TEST(ParameterUpdates, AreReadyAfterWhatAllGradientsPass) {
  EXPECT_THAT(updates_of({kernel_of(1, Phase::backward_weights), kernel_of(0, Phase::backward_weights),
                          kernel_of(-1, Phase::backward_weights, KernelKind::reduction),
                          kernel_of(0, Phase::update, KernelKind::update),
                          kernel_of(1, Phase::update, KernelKind::update)}),
              ElementsAre(std::pair(3, 2), std::pair(4, 2)));
}

}  // namespace
}  // namespace tbdsim
