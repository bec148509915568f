#include "costmodel/step_power.h"

#include <algorithm>
#include <limits>

#include "costmodel/call.h"
#include "costmodel/families/gemm.h"
#include "costmodel/kernel_estimate.h"
#include "costmodel/power.h"

namespace tbdsim {
namespace {

// What a kernel that is no product draws over what the board may. `board`: the board's power for each SM and
// GHz, in W.
double power_of_other(const Kernel& kernel, double board) {
  const bool convolves = kernel.kind == KernelKind::convolution;
  const double of_board = convolves ? 0.9 : 0.65, each = convolves ? 2.6 : 1.9;
  return std::min(1.0, std::max(of_board, each / board));
}

// A product on tensor cores, all its runs together.
struct Product {
  std::size_t kernel = 0;
  double runs = 1;
  double seconds = 0;      // of a run at the whole clock
  double at_peak = 0;      // seconds of its operations at the peak
  double board_power = 0;  // the board's over what it draws at the peak

  [[nodiscard]] double seconds_at(double rate) const { return std::max(seconds, at_peak / rate); }
  // Power beyond the board's in units of it, times seconds.
  [[nodiscard]] double beyond(double rate) const {
    const double time = seconds_at(rate), x = at_peak / time;
    const double drawn = (kPowerBesideClock + (1 - kPowerBesideClock) * x * x * x) / board_power;
    return runs * time * (drawn - 1);
  }
  // The rate that a run of nothing else sustains, over the peak.
  [[nodiscard]] double alone() const { return std::min(1.0, clock_of_power(board_power, 1)); }
};

// runs 0: the kernel is no product that power limits.
Product product_of(const Kernel& kernel, double batch, const Calibration& calibration,
                   const KernelCost& cost) {
  const auto* shape = std::get_if<GemmShape>(&kernel.shape);
  if (shape == nullptr || !cost.runs()) return {.runs = 0};
  const double board_power = power_over_products(*calibration.gpu, cost.math);
  if (board_power >= std::numeric_limits<double>::infinity()) return {.runs = 0};
  const double flops = GemmFamily::flops(gemm_call(kernel, *shape, batch));
  return {.runs = static_cast<double>(kernel.repeat),
          .seconds = cost.total.si(),
          .at_peak = flops / rate_of(*calibration.gpu, cost.math).peak.si(),
          .board_power = board_power};
}

void lengthen(const Product& product, double rate, KernelCost& cost) {
  scale_within(cost, 1, product.seconds_at(std::max(rate, product.alone())));
}

// The highest rate of products over their peak whose power is no more than the other kernels leave.
double sustained_rate(const std::vector<Product>& products, double left) {
  const auto beyond = [&](double rate) {
    double all = 0;
    for (const Product& product : products) all += product.beyond(std::max(rate, product.alone()));
    return all;
  };
  if (beyond(1) <= left) return 1;
  double within = 0, above = 1;
  for (int step = 0; step < 16; ++step) {
    const double rate = (within + above) / 2;
    (beyond(rate) <= left ? within : above) = rate;
  }
  return within;
}

}  // namespace

void limit_by_power(const TrainingStep& step, double batch, const Calibration& calibration,
                    std::vector<KernelCost>& costs) {
  std::vector<Product> products;
  double left = 0, board = 0;
  for (std::size_t k = 0; k < costs.size(); ++k) {
    Product product = product_of(step.kernels[k], batch, calibration, costs[k]);
    if (product.runs == 0) continue;
    product.kernel = k;
    products.push_back(product);
    board = std::max(board, watts_of_each(*calibration.gpu, costs[k].math));
  }
  if (products.empty()) return;
  auto next = products.begin();
  for (std::size_t k = 0; k < costs.size(); ++k) {
    const Kernel& kernel = step.kernels[k];
    const bool is_product = next != products.end() && next->kernel == k;
    if (is_product) ++next;
    if (is_product || kernel.kind == KernelKind::transfer) continue;
    left += static_cast<double>(kernel.repeat) * costs[k].total.si() * (1 - power_of_other(kernel, board));
  }
  const double rate = sustained_rate(products, left);
  if (rate >= 1) return;
  for (const Product& product : products) lengthen(product, rate, costs[product.kernel]);
}

void limit_by_power(const Kernel& kernel, double batch, const Calibration& calibration, KernelCost& cost) {
  const Product product = product_of(kernel, batch, calibration, cost);
  if (product.runs > 0) lengthen(product, 0, cost);
}

}  // namespace tbdsim
