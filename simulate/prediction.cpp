#include "simulate/prediction.h"

#include <array>
#include <cmath>

#include "hwspecs/base/error.h"

namespace tbdsim {
namespace {

// The central 80 % of a normal distribution lie within this many standard deviations.
constexpr double kEightyPercent = 1.2816;

}  // namespace

double Prediction::throughput() const {
  return static_cast<double>(scenario.batch) / timeline.iteration.si();
}

Interval Prediction::throughput_interval() const {
  return {throughput() / interval_factor, throughput() * interval_factor};
}

double Prediction::share(Bound bound) const {
  Seconds sum;
  for (std::size_t k = 0; k < costs.size(); ++k) {
    if (costs[k].bound == bound) sum += costs[k].total * static_cast<double>(step->kernels[k].repeat);
  }
  return sum / timeline.iteration;
}

Bound Prediction::bound() const {
  Bound largest = Bound::compute;
  for (const Bound candidate : {Bound::memory, Bound::overhead}) {
    if (share(candidate) > share(largest)) largest = candidate;
  }
  return largest;
}

Prediction predict(const Scenario& scenario, Library& library) {
  if (scenario.batch < 1 || scenario.batch > kMostSamples) {
    throw UsageError("batch " + std::to_string(scenario.batch) +
                     " is out of range; expected 1 to 1000000000");
  }
  Prediction p;
  p.scenario = scenario;
  p.gpu = &library.gpu(scenario.gpu);
  p.framework = &library.framework(scenario.framework);
  p.profile = &library.profile(scenario.profile);
  const Precision& precision = find_precision(scenario.precision);
  p.model = &library.model(scenario.model);
  const Variant& variant = find_variant(*p.model, scenario.variant, p.framework->name);
  p.scenario.variant = variant.name;
  p.step = &library.step(scenario.model, variant, scenario.framework, precision);

  const auto batch = static_cast<double>(scenario.batch);
  p.costs = estimate(*p.step, batch, *p.gpu, *p.profile);
  p.timeline = simulate_iteration(*p.step, p.costs);
  p.memory = plan_memory(*p.step, batch, *p.framework);
  p.fits = p.memory.total() <= p.gpu->memory_size;
  for (const Kernel& kernel : p.step->kernels) {
    p.flops += Flops(kernel.flops.at(batch)) * static_cast<double>(kernel.repeat);
  }
  p.peak = rate_of(*p.gpu, precision.math).peak;
  p.interval_factor = std::exp(kEightyPercent * p.profile->spread);
  return p;
}

}  // namespace tbdsim
