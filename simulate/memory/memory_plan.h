// GPU memory of a training iteration by the five categories of the TBD paper (section III-D).
//
// Where a framework allocates tensors as they come and go (TensorFlow, CNTK, PyTorch) memory is what lives at
// the kernel that needs most: tensors in use, temporary tensors and the workspace of the algorithm chosen for
// it. Where it plans memory before the run (MXNet) all blocks of the plan live throughout (memory_pool.h),
// and the largest workspace is kept; each is asked for from the driver, which rounds it up.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "costmodel/estimate.h"
#include "graphs/training_step.h"
#include "hwspecs/base/quantity.h"
#include "hwspecs/gpu_spec.h"
#include "simulate/framework/framework_spec.h"
#include "simulate/memory/static_plan.h"

namespace tbdsim {

struct MemoryPlan {
  Bytes weights;  // parameters and moving statistics, with low-precision copies
  Bytes weight_gradients;
  Bytes feature_maps;   // tensors kept for the backward pass and gradient maps, as the paper counts them
  Bytes workspace;      // scratch memory, of the algorithms chosen within the framework's limit
  Bytes dynamic;        // optimizer state and the framework's further copies of the parameters
  Bytes context;        // CUDA context and libraries, and what the driver rounds up (driver_memory.h)
  Bytes trials;         // what more the first iteration needed, which tried other algorithms; in no total
  int peak_kernel = 0;  // index of the kernel at which most is alive

  [[nodiscard]] Bytes model() const {
    return weights + weight_gradients + feature_maps + workspace + dynamic;
  }
  [[nodiscard]] Bytes total() const { return model() + context; }
};

// What a step's memory is at any batch, found once.
struct MemoryOutline {
  enum Category : std::size_t { weights, weight_gradients, feature_maps, dynamic };
  struct Alive {
    int kernel = 0;
    std::array<Size, 4> tensors;  // by category
    Size scratch;                 // temporary tensors
    Size all;                     // of them together
  };
  struct Parameters {
    Category category = weights;
    Size bytes;              // of each tensor
    std::int64_t count = 0;  // of this size
  };
  std::vector<Alive> peaks;         // no other kernel has as much at any batch
  std::vector<Alive> convolutions;  // their workspaces differ
  std::vector<PoolBlocks> pool;
  std::vector<Parameters> parameters;
  Size library_state;  // of all layers
};

[[nodiscard]] MemoryOutline memory_outline(const TrainingStep& step);

// The driver's pages: 2 MiB from Pascal on (NVIDIA open-gpu-doc, "Pascal MMU Format Changes"); 0, any size,
// before: MXNet on a TITAN X of the Maxwell generation takes what it asks for (mean error 1.8 %).
[[nodiscard]] Bytes driver_page(const GpuSpec& gpu);

// `costs` are those of the step's kernels at this batch; only those of convolutions matter. `page` is the
// driver's: blocks planned before the run in exact sizes come from it one by one.
[[nodiscard]] MemoryPlan plan_memory(const MemoryOutline& outline, const TrainingStep& step,
                                     std::span<const KernelCost> costs, double batch,
                                     const Framework& framework, Bytes page = Bytes());

// On one of several GPUs where MXNet's key-value store adds gradients on the GPUs: each updates its part of
// the parameters, with that part of their state, a buffer to add up and one for every other GPU's gradients.
[[nodiscard]] MemoryPlan on_one_of(std::int64_t gpus, MemoryPlan plan, const Framework& framework);

// The largest batch for which `fits`; 0 when not even one sample does, `most` at the most. Memory grows with
// the batch but for workspaces; where these shrink, a batch whose next does not fit.
[[nodiscard]] std::int64_t largest_batch(const std::function<bool(std::int64_t batch)>& fits,
                                         std::int64_t most);

}  // namespace tbdsim
