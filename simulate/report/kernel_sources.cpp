#include "simulate/report/kernel_sources.h"

#include <set>
#include <vector>

#include "costmodel/model_of_kernel.h"
#include "costmodel/profile/profile_block.h"
#include "hwspecs/base/suggest.h"

namespace tbdsim {
namespace {

std::string listed(const std::set<std::string>& names) {
  return joined(std::vector<std::string>(names.begin(), names.end()));
}

}  // namespace

KernelSource source_of(const Prediction& p, const Iteration& iteration, std::size_t k) {
  const Kernel& kernel = iteration.step->kernels[k];
  const auto batch = static_cast<double>(iteration.batch);
  const FamilyModel* model = model_of_kernel(kernel, batch, iteration.costs[k].math, *p.calibration);
  if (model == nullptr) return {};
  return {model->block->generation, model->measured_on_this_gpu};
}

std::string kernel_sources(std::span<const Prediction> predictions) {
  std::set<std::string> here;
  std::set<std::string> elsewhere;
  for (const Prediction& p : predictions) {
    const Iteration& iteration = p.typical();
    for (std::size_t k = 0; k < iteration.costs.size(); ++k) {
      if (!iteration.costs[k].runs()) continue;
      const KernelSource source = source_of(p, iteration, k);
      if (!source.library.empty()) (source.on_this_gpu ? here : elsewhere).insert(source.library);
    }
  }
  if (here.empty() && elsewhere.empty()) return "fitted to no measurement";
  std::string text;
  if (!here.empty()) text = listed(here) + " measured on this GPU";
  if (!elsewhere.empty()) text += (text.empty() ? "" : "; ") + listed(elsewhere) + " from other GPUs";
  return text;
}

}  // namespace tbdsim
