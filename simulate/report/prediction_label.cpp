#include "simulate/report/prediction_label.h"

#include <algorithm>

namespace tbdsim {

std::string label_among(std::span<const Prediction> predictions, const Prediction& prediction) {
  const Scenario& own = prediction.scenario;
  const bool another = std::any_of(predictions.begin(), predictions.end(), [&](const Prediction& other) {
    const Scenario& s = other.scenario;
    return other.model->name == prediction.model->name && s.framework == own.framework &&
           s.variant != own.variant;
  });
  return another ? prediction.model->name + " " + own.variant : prediction.model->name;
}

}  // namespace tbdsim
