#include "costmodel/step_power.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "costmodel/call.h"
#include "costmodel/families/convolution.h"
#include "costmodel/families/gemm.h"
#include "costmodel/kernel_estimate.h"
#include "costmodel/power.h"

namespace tbdsim {
namespace {

constexpr double kPowerOfOthers = 0.65;  // of the board's
constexpr double kWattsOfOthers = 1.9;   // for each SM and GHz

// The least power over that at the peak at which a chip computes at `rate`, over the peak: of all SMs, or of
// fewer at a higher clock where these draw less.
double drawn_at(double rate) {
  const double best = std::cbrt((kLeastOfClock - kPowerBesideClock) / (1 - kPowerBesideClock));
  if (rate < best) return kLeastOfClock * rate / best;
  return kPowerBesideClock + (1 - kPowerBesideClock) * rate * rate * rate;
}

// A product or convolution on tensor cores, all its runs together. Rates are over the peak of the SMs that
// run.
struct Product {
  std::size_t kernel = 0;
  double runs = 1;
  double seconds = 0;      // of a run at the whole clock
  double at_peak = 0;      // seconds of its operations at the peak
  double board_power = 0;  // the board's over what it draws at the peak
  double alone = 0;        // the rate that a run of nothing else sustains
  double least_drawn = 0;  // over the board's power

  [[nodiscard]] double seconds_at(double rate) const {
    return std::max(seconds, at_peak / std::max(rate, alone));
  }
  // Power over the board's, of a run of so many seconds.
  [[nodiscard]] double drawn(double time) const {
    return std::max(drawn_at(at_peak / time) / board_power, least_drawn);
  }
  // Power beyond the board's in units of it, times seconds.
  [[nodiscard]] double beyond(double rate) const {
    const double time = seconds_at(rate);
    return runs * time * (drawn(time) - 1);
  }
};

// Operations of a product or convolution; 0 of other kernels.
double operations_of(const Kernel& kernel, double batch) {
  if (const auto* gemm = std::get_if<GemmShape>(&kernel.shape))
    return GemmFamily::flops(gemm_call(kernel, *gemm, batch));
  if (const auto* conv = std::get_if<ConvShape>(&kernel.shape))
    return ConvFamily::flops(conv_call(kernel, *conv, batch));
  return 0;
}

// runs 0: power does not limit the kernel.
Product product_of(const Kernel& kernel, double batch, const Calibration& calibration,
                   const KernelCost& cost) {
  const GpuSpec& gpu = *calibration.gpu;
  const double operations = operations_of(kernel, batch);
  if (operations == 0 || !cost.runs()) return {.runs = 0};
  const double board_power = power_over_products(gpu, cost.math);
  if (board_power >= std::numeric_limits<double>::infinity()) return {.runs = 0};
  // A board runs no more SMs than have what other kernels draw, and what a clock needs.
  const double watts = watts_of_each(gpu, cost.math), full = watts / board_power;
  const bool convolves = kernel.kind == KernelKind::convolution;
  const double running =
      convolves ? 1 : std::min(1.0, watts / std::max(kWattsOfOthers / kPowerOfOthers, kLeastOfClock * full));
  return {.runs = static_cast<double>(kernel.repeat),
          .seconds = cost.total.si(),
          .at_peak = operations / (rate_of(gpu, cost.math).peak.si() * running),
          .board_power = board_power / running,
          .alone = std::min(1.0, clock_of_power(board_power, 1)) / running,
          .least_drawn = convolves ? kPowerOfOthers : 0};
}

// The highest rate of products whose power is no more than the other kernels leave; infinite: power limits
// none of them.
double sustained_rate(const std::vector<Product>& products, double left) {
  constexpr double kUnlimited = std::numeric_limits<double>::infinity();
  constexpr int kSteps = 16;  // to 2^-16 of the fastest
  const auto beyond = [&](double rate) {
    double all = 0;
    for (const Product& product : products) all += product.beyond(rate);
    return all;
  };
  if (beyond(kUnlimited) <= left) return kUnlimited;
  double within = 0, above = 0;
  for (const Product& product : products) above = std::max(above, product.at_peak / product.seconds);
  for (int step = 0; step < kSteps; ++step) {
    const double rate = (within + above) / 2;
    (beyond(rate) <= left ? within : above) = rate;
  }
  return within;
}

}  // namespace

void limit_by_power(const TrainingStep& step, double batch, const Calibration& calibration,
                    std::vector<KernelCost>& costs) {
  std::vector<Product> products;
  double left = 0;
  for (std::size_t k = 0; k < costs.size(); ++k) {
    const Kernel& kernel = step.kernels[k];
    Product product = product_of(kernel, batch, calibration, costs[k]);
    if (product.runs > 0) {
      product.kernel = k;
      products.push_back(product);
    } else if (kernel.kind != KernelKind::transfer) {
      left += static_cast<double>(kernel.repeat) * costs[k].total.si() * (1 - kPowerOfOthers);
    }
  }
  if (products.empty()) return;
  const double rate = sustained_rate(products, left);
  for (const Product& product : products) scale_within(costs[product.kernel], 1, product.seconds_at(rate));
}

void limit_by_power(const Kernel& kernel, double batch, const Calibration& calibration, KernelCost& cost) {
  const Product product = product_of(kernel, batch, calibration, cost);
  if (product.runs > 0) scale_within(cost, 1, product.seconds_at(0));
}

std::optional<double> power_of_product(const Kernel& kernel, double batch, const Calibration& calibration,
                                       const KernelCost& cost) {
  const Product product = product_of(kernel, batch, calibration, cost);
  if (product.runs == 0) return std::nullopt;
  return product.drawn(product.seconds);
}

}  // namespace tbdsim
