// Seconds that matrix products and convolutions on tensor cores take within the board's power: those of a run
// of nothing else, and those of a training step, whose other kernels draw less than the board may.
//
// The board averages its power over many kernels. While a step's products draw more than the board may and
// its other kernels less, products run at the whole clock as long as the mean stays below the limit:
//
//   sum over products t (d(x) - 1) <= sum over other kernels t (1 - o),   d(x) = (0.15 + 0.85 x^3) / b
//
// t: seconds; x: the product's rate over the peak; b: the board's power over what products draw at the peak
// (power.h); o: power of another kernel over the board's, 0.65, which a convolution draws at least. Below x =
// 0.445 fewer SMs at that clock draw less, and d grows with x. Where the products draw more than is left, all
// of them have at most the rate x at which the two sides are equal, and at least that of a run of nothing
// else. A chip draws no less on a smaller board: where a board has less than 1.9 W / 0.65 for each SM and
// GHz, only so many SMs count in x and b of a matrix product as have that. Convolutions count the whole chip.
//
// Source of o: power of 52 training steps on an H100 of 700 W (calibrate/records/h100_sxm/steps.csv) by the
// time of their kernels (step_kernels.csv.gz), least squares: 411 W of what moves bytes, 453 W of attention,
// 631 W of convolutions, 898 W of products in half precision at 0.70 of the peak, where d has 869. Single
// steps ask for an o of 0.4 (BERT-large) to 0.7 (GPT-2); 700 W are 2.9 W for each SM and GHz. BERT-large in
// half precision, 0.3 of the time in products, ran at 480 W with its products as fast as alone (x = 0.73),
// ViT-B at 680 W (0.70); a product again and again at 700 W had 0.65 to 0.72. Of other boards nothing was
// measured: the larger of the two leaves products less.
//
// Convolutions draw as products do: by the operations of the same steps 836 W at the peak beside 346 W of any
// busy kernel and 161 W at the whole bandwidth, products 931 W (rms of the residuals 45 W; 68 W with one
// power for all convolutions). VGG-16, half of its time in convolutions at 0.57 of the peak, is at the limit
// (650 W). That they count the whole chip is what MLPerf's RetinaNet and Mask R-CNN show on boards of 300 to
// 400 W with the chips of larger ones (submissions of split fit, A100 PCIe, H100 PCIe, H100 NVL).
#pragma once

#include <optional>
#include <vector>

#include "costmodel/calibration.h"
#include "costmodel/kernel_cost.h"
#include "graphs/precision.h"
#include "graphs/training_step.h"

namespace tbdsim {

// False if neither products nor convolutions of the precision run on tensor cores.
[[nodiscard]] constexpr bool power_limits(const Precision& precision) {
  return precision.math != MathType::fp32 || precision.weight_product_math() != MathType::fp32;
}

// Lengthens the times of a step's products and convolutions on tensor cores to what the power allows.
// `costs`: of its kernels.
void limit_by_power(const TrainingStep& step, double batch, const Calibration& calibration,
                    std::vector<KernelCost>& costs);

// The same of one kernel that a board runs again and again.
void limit_by_power(const Kernel& kernel, double batch, const Calibration& calibration, KernelCost& cost);

// Power that the board draws over its limit while a product or convolution runs on tensor cores; none for
// other kernels. Above 1 where the kernels beside it draw less.
[[nodiscard]] std::optional<double> power_of_product(const Kernel& kernel, double batch,
                                                     const Calibration& calibration, const KernelCost& cost);

}  // namespace tbdsim
