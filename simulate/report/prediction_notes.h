// Sentences below a table of predictions: what a batch counts, what was chosen, what is only an estimate.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "simulate/prediction/prediction.h"

namespace tbdsim {

// Sentences that hold for some of the predictions, in lines of at most `width` letters.
[[nodiscard]] std::vector<std::string> prediction_notes(std::span<const Prediction> predictions,
                                                        std::size_t width);

// The largest batch that fits, for each prediction that does not fit.
[[nodiscard]] std::vector<std::string> fit_notes(std::span<const Prediction> predictions, std::size_t width);

// True if the scenario says where samples come from.
[[nodiscard]] bool says_input(const Prediction& prediction);

}  // namespace tbdsim
