#include "simulate/prediction/uncertainty.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numeric>

#include <fmt/format.h>

#include "costmodel/model_of_kernel.h"
#include "hwspecs/base/quantity.h"

namespace tbdsim {
namespace {

constexpr std::size_t index_of(Effect effect) { return static_cast<std::size_t>(effect); }

// Share of the kernels' time that was not measured on the GPU itself.
double unmeasured_share(const Prediction& p, const Iteration& iteration) {
  double all = 0, others = 0;
  for (const auto& [k, times, squares] : iteration.runs) {
    const Kernel& kernel = iteration.step->kernels[k];
    const KernelCost& cost = iteration.costs[k];
    const double time = cost.total.si() * static_cast<double>(times);
    const FamilyModel* model =
        model_of_kernel(kernel, static_cast<double>(iteration.batch), cost.math, *p.calibration);
    all += time;
    if (model == nullptr || !model->measured_on_this_gpu) others += time;
  }
  return all > 0 ? others / all : 0;
}

// Share of the iteration in which the host works on what layers copy.
double host_share(const Iteration& iteration) {
  double nanoseconds = 0;
  for (const Kernel& kernel : iteration.step->kernels)
    nanoseconds +=
        kernel.host_nanoseconds.at(static_cast<double>(iteration.batch)) * static_cast<double>(kernel.repeat);
  return std::clamp(nanoseconds / kGiga / iteration.time().si(), 0.0, 1.0);
}

// ln of the framework's factor on convolutions in half precision, for the part of the iteration that they
// take.
double factored_share(const Prediction& p, const Iteration& iteration) {
  const double factor = p.framework->half_convolution;
  if (factor == 1) return 0;
  Seconds time;
  for (const auto& [k, times, squares] : iteration.runs) {
    const MathType math = iteration.costs[k].math;
    const bool half = math == MathType::fp16 || math == MathType::bf16;
    if (half && iteration.step->kernels[k].kind == KernelKind::convolution)
      time += iteration.costs[k].total * static_cast<double>(times);
  }
  return std::abs(std::log(factor)) * std::min(1.0, time / iteration.time());
}

// Stems of models' files.
constexpr std::array<std::string_view, 29> kMeasuredClasses = {
    "alexnet",   "bert_base", "bert_large",  "bert_large_packed",
    "bloom",     "decoder",   "deepseek",    "gnmt",
    "gpt2",      "gpt3",      "gpt_oss",     "inception_v3",
    "llama",     "mistral",   "mixtral",     "mpt",
    "opt",       "qwen3",     "qwen3_moe",   "resnet101",
    "resnet152", "resnet18",  "resnet34",    "resnet50",
    "seq2seq",   "t5",        "transformer", "vgg13",
    "vgg16"};
static_assert(std::ranges::is_sorted(kMeasuredClasses));

}  // namespace

bool is_of_measured_class(std::string_view file) {
  return std::ranges::binary_search(kMeasuredClasses, file);
}

Effects exposure_of(const Prediction& p) {
  const Iteration& iteration = p.typical();
  Effects exposure{};
  exposure[index_of(Effect::kernels)] = combined_sd(*iteration.step, iteration.runs, iteration.costs);
  exposure[index_of(Effect::gpu)] = unmeasured_share(p, iteration);
  exposure[index_of(Effect::version)] = p.framework->fitted_runs > 0 ? 0 : 1;
  // A captured step is the program's own, operator by operator.
  exposure[index_of(Effect::model)] = p.model->captured ? 0 : 1;
  for (const Effect always : {Effect::set, Effect::rest}) exposure[index_of(always)] = 1;
  exposure[index_of(Effect::exchange)] = iteration.sync.added() / iteration.time();
  exposure[index_of(Effect::host)] = host_share(iteration);
  // A framework's spread is of runs of all classes.
  const bool known = p.model->captured || p.framework->spread > 0 ||
                     is_of_measured_class(std::filesystem::path(p.model->path).stem().string());
  exposure[index_of(Effect::network)] = known ? 0 : 1;
  exposure[index_of(Effect::factor)] = factored_share(p, iteration);
  return exposure;
}

Effects deviations_of(const Prediction& prediction) {
  Effects deviations = exposure_of(prediction);
  for (std::size_t e = 0; e < deviations.size(); ++e) deviations[e] *= kComponents[e];
  double& version = deviations[index_of(Effect::version)];
  version = std::hypot(version, prediction.framework->spread);
  return deviations;
}

double total_deviation(const Effects& deviations) {
  return std::sqrt(std::inner_product(deviations.begin(), deviations.end(), deviations.begin(), 0.0));
}

std::string parts_text(const Effects& deviations) {
  std::array<std::size_t, kEffectNames.size()> order{};
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return deviations[a] > deviations[b]; });
  std::string text;
  for (const std::size_t e : order) {
    const double percent = 100 * std::expm1(kEightyPercent * deviations[e]);
    constexpr double kLeastShown = 0.5;
    if (percent >= kLeastShown)
      text += fmt::format("{}{} {:.0f}", text.empty() ? "" : ", ", kEffectNames[e], percent);
  }
  return text;
}

}  // namespace tbdsim
