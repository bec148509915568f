#include "simulate/prediction/predict_all.h"

#include <exception>

#include <tbb/parallel_for.h>

#include "simulate/prediction/predict.h"

namespace tbdsim {

void for_each_index(std::size_t count, const std::function<void(std::size_t)>& work) {
  std::vector<std::exception_ptr> errors(count);
  tbb::parallel_for(std::size_t{0}, count, [&](std::size_t i) {
    try {
      work(i);
    } catch (...) {
      errors[i] = std::current_exception();
    }
  });
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
}

std::vector<Prediction> predict_all(std::span<const Scenario> scenarios, const Resolver& resolve) {
  std::vector<Prediction> predictions(scenarios.size());
  for_each_index(scenarios.size(), [&](std::size_t i) { predictions[i] = predict(scenarios[i], resolve); });
  return predictions;
}

}  // namespace tbdsim
