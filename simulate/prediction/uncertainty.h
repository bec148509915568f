// How far measurements are expected from a prediction, as a sum of effects on ln(time), each with a standard
// deviation of its own. A prediction has the effects of what nobody measured or fitted:
//
//   sd^2 = (K * s)^2 + (G * u)^2 + V^2 + M^2 + S^2 + R^2 + (X * x)^2 + (H * h)^2 + N^2 + (F * f)^2
//
//   s, K  standard deviation that the residuals of measured kernels leave (combined_sd()), and the part of it that
//         shows in the time of an iteration
//   u, G  share of the kernels' time that comes from other GPUs' measurements; effect of a GPU of which nothing is
//         known but its data sheet
//   V     of a framework version whose constants were fitted to no run (Framework::fitted_runs); 0 of others.
//         Code that is tuned anew for each GPU has more (Framework::spread), which is added as a square
//   M     of a model that someone wrote down; 0 of captured steps
//   S     of a set of runs: host, driver, clocks, who measured
//   R     what none of these explains
//   x, X  part of the iteration that waits for other GPUs or is slowed by them, and the spread of its time
//   h, H  part of the iteration in which the host works on data of layers (`host_time`), and the spread of hosts
//   N     of a network of a class whose runs have shaped no part of the model (is_of_measured_class); 0 of others
//   f, F  ln of the framework's factor on convolutions in half precision times the part of the iteration that
//         they take, and how far the factor of one GPU is from that of another, over its logarithm
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include "simulate/prediction/prediction.h"

namespace tbdsim {

enum class Effect { kernels, gpu, version, model, set, rest, exchange, host, network, factor };
inline constexpr std::array<std::string_view, 10> kEffectNames = {"kernels",
                                                                  "GPU",
                                                                  "framework version",
                                                                  "model",
                                                                  "set",
                                                                  "rest",
                                                                  "exchange",
                                                                  "host",
                                                                  "class of network",
                                                                  "framework's factor"};
// A number for each effect.
using Effects = std::array<double, kEffectNames.size()>;

// K, G, V, M, S, R, X, H, N and F. K to R and N: tests/validation/fit_intervals.py, of all rows of split
// `fit`: what runs share by the method of moments, and widths that hold 80 % of the rows that no form of the
// model was chosen with (interval_fit.h). G, V: no more than the other effects explain. X: how far three
// clusters' rates over TCP lie apart (sync_plan.cpp), the same assumed of other exchanges. H: masks took two
// programs' hosts 2.0 and 2.8 times as long as they take here (docs/accuracy.md): half of that range. F:
// TensorFlow's factor, fitted with each of the four GPUs left out that have such runs
// (1.67, 1.37, 1.26, 1.30), lies 0.38 from one GPU to another by the jackknife; ln 1.65 is 0.50.
inline constexpr Effects kComponents = {0.146, 0, 0, 0.028, 0.03, 0.077, 0.5, 0.5, 0.094, 0.8};

// True for classes of which published runs were at hand when the model's formulas and constants were chosen:
// image classification without groups, translation, language. `file`: stem of the model's file.
[[nodiscard]] bool is_of_measured_class(std::string_view file);

// The amount of each effect that a prediction has: s, u, 1 or 0 for V, 1, 1, 1, x, h, 1 or 0 for N, f.
[[nodiscard]] Effects exposure_of(const Prediction& prediction);

// Standard deviation of ln(measured time / predicted) by effect; their squares add.
[[nodiscard]] Effects deviations_of(const Prediction& prediction);
[[nodiscard]] double total_deviation(const Effects& deviations);

// "rest 13, model 9, GPU 6": half widths of the 80 % interval by effect in per cent, the largest first,
// without those below half a per cent.
[[nodiscard]] std::string parts_text(const Effects& deviations);

}  // namespace tbdsim
