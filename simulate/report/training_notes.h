// Notes on the choices of a training run: trained weights, batches of an update, what is on the host.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "simulate/prediction/prediction.h"

namespace tbdsim {

// Sentences of the predictions whose scenarios choose something, in lines of at most `width` letters.
[[nodiscard]] std::vector<std::string> training_notes(std::span<const Prediction> predictions,
                                                      std::size_t width);

}  // namespace tbdsim
