// A scenario with everything its names stand for: all that a prediction depends on.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "costmodel/estimate.h"
#include "costmodel/profile/profile.h"
#include "graphs/convergence.h"
#include "graphs/dataset.h"
#include "graphs/model.h"
#include "graphs/training_step.h"
#include "hwspecs/gpu_spec.h"
#include "simulate/communication/sync_plan.h"
#include "simulate/framework/framework_spec.h"
#include "simulate/prediction/loader.h"
#include "simulate/prediction/scenario.h"
#include "simulate/workload/workload.h"

namespace tbdsim {

// Shares the ownership of what it refers to: it may outlive the cache that read the files.
struct ResolvedScenario {
  Scenario scenario;  // with the GPU's and the variant's name, and the batch that is trained, filled in
  std::int64_t batch_asked = 1;  // samples
  bool batch_limited = false;    // the batch is the model's largest, smaller than batch_asked

  std::shared_ptr<const ModelFile> model;
  const Variant* variant = nullptr;                // one of the model's
  const Precision* precision = nullptr;            // one of kPrecisions
  std::shared_ptr<const Dataset> dataset;          // or none
  std::shared_ptr<const Convergence> convergence;  // to the scenario's target, or none
  std::shared_ptr<const Framework> framework;
  std::shared_ptr<const GpuSpec> gpu;
  std::shared_ptr<const Profile> profile;
  std::shared_ptr<const Calibration> calibration;  // of that profile, for that GPU
  KernelFactors factors = no_factors();            // the framework's, on that GPU
  std::optional<SyncPlan> sync;                    // of gradients between several GPUs; none for one GPU
  Loader loader;
  double cores = 0;  // CPU cores of the machine, if one GPU is alone in one that is named; 0: unknown
  DeviceMemory device_memory;  // of the GPU

  // One for each length to which samples are padded.
  std::shared_ptr<const std::vector<LengthStep>> steps;
  std::vector<std::int64_t> batches;  // samples in an iteration of each step
  // Costs of kernels that are the same at every batch, of each step; empty: not computed beforehand.
  std::vector<std::shared_ptr<const std::vector<FixedCost>>> fixed_costs;

  // Batches of the data set that an iteration reads.
  [[nodiscard]] std::int64_t batches_read() const {
    return model->batches_per_iteration * scenario.training.accumulate;
  }

  // GPUs in all.
  [[nodiscard]] std::int64_t ranks() const { return scenario.cluster.ranks(); }
};

}  // namespace tbdsim
