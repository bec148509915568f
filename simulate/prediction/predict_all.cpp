#include "simulate/prediction/predict_all.h"

#include "hwspecs/base/error.h"
#include "simulate/prediction/predict.h"
#include "simulate/workload/parallel.h"

namespace tbdsim {

std::vector<Prediction> predict_all(std::span<const Scenario> scenarios, SpecCache& specs) {
  std::vector<Prediction> predictions(scenarios.size());
  for_each_index(scenarios.size(), [&](std::size_t i) { predictions[i] = predict(scenarios[i], specs); });
  return predictions;
}

void read_all(std::span<const std::string> models, const std::string& gpu, const std::string& profile,
              SpecCache& specs) {
  for_each_index(models.size() + 1, [&](std::size_t i) {
    try {
      i == 0 ? static_cast<void>(specs.profile_for(gpu, profile))
             : static_cast<void>(specs.model(models[i - 1]));
    } catch (const Error&) {  // thrown again at the next look-up
    }
  });
}

}  // namespace tbdsim
