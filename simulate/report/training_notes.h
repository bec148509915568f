// Notes on the choices of a training run: trained weights, batches of an update, what is on the host.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "simulate/prediction/prediction.h"

namespace tbdsim {

// A sentence for each choice of the predictions' scenarios.
[[nodiscard]] std::vector<std::string> training_notes(std::span<const Prediction> predictions);

}  // namespace tbdsim
