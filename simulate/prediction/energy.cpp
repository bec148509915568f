#include "simulate/prediction/energy.h"

namespace tbdsim {
namespace {

double share_of(const PowerShares& shares, Limit limit) {
  switch (limit) {
    case Limit::compute:
      return shares.compute;
    case Limit::memory:
      return shares.memory;
    case Limit::overhead:
      return shares.small;
    case Limit::cpu:
    case Limit::input:
      return shares.waiting;
    case Limit::sync:
      return shares.sync;
  }
  return shares.waiting;
}

Power at_share(const Prediction& p, double share) {
  const Watts limit = p.gpu->tdp * static_cast<double>(p.ranks());
  const Watts board = limit * share;
  return {board, (board + limit * kHostShare) * kCoolingFactor};
}

}  // namespace

Power training_power(const Prediction& p, const PowerShares& shares) {
  double mean = 0;
  for (std::size_t l = 0; l < kLimitNames.size(); ++l) {
    const auto limit = static_cast<Limit>(l);
    mean += p.share(limit) * share_of(shares, limit);
  }
  return at_share(p, mean);
}

Power waiting_power(const Prediction& p, const PowerShares& shares) { return at_share(p, shares.waiting); }

Energy operator*(const Power& power, Seconds time) { return {power.board * time, power.wall * time}; }

Energy operator+(const Energy& a, const Energy& b) { return {a.board + b.board, a.wall + b.wall}; }

}  // namespace tbdsim
