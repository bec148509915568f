#include "simulate/prediction/predict_all.h"

#include "simulate/prediction/predict.h"
#include "simulate/workload/parallel.h"

namespace tbdsim {

std::vector<Prediction> predict_all(std::span<const Scenario> scenarios, const Resolver& resolve) {
  std::vector<Prediction> predictions(scenarios.size());
  for_each_index(scenarios.size(), [&](std::size_t i) { predictions[i] = predict(scenarios[i], resolve); });
  return predictions;
}

}  // namespace tbdsim
