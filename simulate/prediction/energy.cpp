#include "simulate/prediction/energy.h"

#include <algorithm>

#include "costmodel/step_power.h"

namespace tbdsim {
namespace {

double share_of(const PowerShares& shares, Bound bound) {
  switch (bound) {
    case Bound::compute:
      return shares.compute;
    case Bound::memory:
      return shares.memory;
    case Bound::overhead:
      return shares.small;
  }
  return shares.memory;
}

// Shares of the board's limit that kernels draw, times their seconds, and those seconds.
struct KernelPower {
  double drawn = 0, seconds = 0;
};

KernelPower power_of_kernels(const Prediction& p, const Iteration& iteration, const PowerShares& shares) {
  const bool tensor_cores = power_limits(*p.precision);
  KernelPower all;
  for (std::size_t k = 0; k < iteration.costs.size(); ++k) {
    const Kernel& kernel = iteration.step->kernels[k];
    const KernelCost& cost = iteration.costs[k];
    if (kernel.kind == KernelKind::transfer || !cost.runs()) continue;
    double share = share_of(shares, cost.bound);
    if (tensor_cores) {
      const auto product =
          power_of_product(kernel, static_cast<double>(iteration.batch), *p.calibration, cost);
      if (product) share = std::max(*product, std::min(share, shares.memory));
    }
    const double seconds = static_cast<double>(kernel.repeat) * cost.total.si();
    all.drawn += share * seconds;
    all.seconds += seconds;
  }
  return all;
}

// Mean share of the board's limit while kernels run.
double share_of_kernels(const Prediction& p, const PowerShares& shares) {
  KernelPower all;
  for (const Iteration& iteration : p.iterations) {
    const KernelPower one = power_of_kernels(p, iteration, shares);
    all.drawn += iteration.share * one.drawn;
    all.seconds += iteration.share * one.seconds;
  }
  return all.seconds > 0 ? all.drawn / all.seconds : shares.waiting;
}

Power at_share(const Prediction& p, double share) {
  const Watts limit = p.gpu->tdp * static_cast<double>(p.ranks());
  const Watts board = limit * share;
  return {board, (board + limit * kHostShare) * kCoolingFactor};
}

}  // namespace

Power training_power(const Prediction& p, const PowerShares& shares) {
  const double busy = p.share(Limit::compute) + p.share(Limit::memory) + p.share(Limit::overhead);
  const double waits = p.share(Limit::cpu) + p.share(Limit::input);
  const double mean =
      busy * share_of_kernels(p, shares) + waits * shares.waiting + p.share(Limit::sync) * shares.sync;
  return at_share(p, std::min(1.0, mean));
}

Power waiting_power(const Prediction& p, const PowerShares& shares) { return at_share(p, shares.waiting); }

Energy operator*(const Power& power, Seconds time) { return {power.board * time, power.wall * time}; }

Energy operator+(const Energy& a, const Energy& b) { return {a.board + b.board, a.wall + b.wall}; }

}  // namespace tbdsim
