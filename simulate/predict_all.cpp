#include "simulate/predict_all.h"

#include <exception>

#include <tbb/parallel_for.h>

#include "hwspecs/base/error.h"

namespace tbdsim {

std::vector<Prediction> predict_all(std::span<const Scenario> scenarios, Library& library) {
  std::vector<Prediction> predictions(scenarios.size());
  std::vector<std::exception_ptr> errors(scenarios.size());
  tbb::parallel_for(std::size_t{0}, scenarios.size(), [&](std::size_t i) {
    try {
      predictions[i] = predict(scenarios[i], library);
    } catch (...) {
      errors[i] = std::current_exception();
    }
  });
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
  return predictions;
}

void read_all(std::span<const std::string> models, Library& library) {
  tbb::parallel_for(std::size_t{0}, models.size(), [&](std::size_t i) {
    try {
      (void)library.model(models[i]);
    } catch (const Error&) {  // thrown again to who asks
    }
  });
}

}  // namespace tbdsim
