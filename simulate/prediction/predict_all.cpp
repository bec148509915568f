#include "simulate/prediction/predict_all.h"

#include <tbb/enumerable_thread_specific.h>

#include "costmodel/residuals/fast/estimate_cache.h"
#include "simulate/prediction/predict.h"
#include "simulate/workload/parallel.h"

namespace tbdsim {

std::vector<Prediction> predict_all(std::span<const Scenario> scenarios, const Resolver& resolve) {
  std::vector<Prediction> predictions(scenarios.size());
  tbb::enumerable_thread_specific<EstimateCache>
      caches;  // frameworks of one model share half of their kernels
  for_each_index(scenarios.size(),
                 [&](std::size_t i) { predictions[i] = predict(scenarios[i], resolve, &caches.local()); });
  return predictions;
}

}  // namespace tbdsim
