#include "simulate/job/layout_target.h"

#include <cmath>

namespace tbdsim {
namespace {

// Time of a forward pass over that of a step without recomputation: a backward pass takes two of them.
constexpr double kForwardShare = 1.0 / 3;

Power at_share(double share, const PlanInputs& inputs) {
  const Watts limit = inputs.calibration->gpu->tdp * static_cast<double>(inputs.job.gpus);
  return {limit * share, (limit * share + limit * kHostShare) * kCoolingFactor};
}

// The mean power over a step. Parts of it are taken to be limited by arithmetic, by memory (the update), by
// links, or to wait.
Power step_power(const LayoutPrediction& p, const PlanInputs& inputs) {
  const PowerShares shares;
  const StepParts& parts = p.parts;
  const Seconds computing = parts.compute + parts.again;
  const Seconds waiting = p.step - computing - parts.update - p.exposed();
  const double mean = (computing * shares.compute + parts.update * shares.memory + p.exposed() * shares.sync +
                       waiting * shares.waiting) /
                      p.step;
  return at_share(mean, inputs);
}

}  // namespace

LayoutTarget target_of_layout(const LayoutPrediction& p, const PlanInputs& inputs, const Convergence& to,
                              double epochs) {
  const auto batch = static_cast<double>(inputs.job.global_batch);
  LayoutTarget target;
  target.steps = std::ceil(epochs * to.epoch / batch);
  target.startup = to.startup;
  target.training = p.step * target.steps;
  const Seconds forward = (p.step - p.parts.again - p.parts.update) * kForwardShare;
  if (!to.evaluation.overlaps) {
    target.evaluation = (to.evaluation.overhead + forward * std::ceil(to.evaluation.samples / batch)) *
                        to.evaluation.within(epochs);
  }
  if (const auto& price = inputs.calibration->gpu->price_per_hour)
    target.cost = *price * static_cast<double>(inputs.job.gpus) * target.total();
  target.energy = step_power(p, inputs) * (target.training + target.evaluation) +
                  at_share(PowerShares{}.waiting, inputs) * target.startup;
  return target;
}

}  // namespace tbdsim
