// GPU memory of a training iteration.
//
// Where a framework allocates tensors as they come and go (TensorFlow, CNTK, PyTorch) the memory is that of
// the kernel that needs most: tensors alive, temporary tensors and the workspace of the algorithm chosen for
// it. Where it plans memory before the run (MXNet) all blocks of the plan live throughout (static_plan.h),
// and the largest workspace is kept; each block is requested from the driver, which rounds it up
// (driver_memory.h).
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "costmodel/estimate.h"
#include "graphs/training_step.h"
#include "hwspecs/base/quantity.h"
#include "simulate/framework/framework_spec.h"
#include "simulate/memory/category.h"
#include "simulate/memory/driver_memory.h"
#include "simulate/memory/static_plan.h"

namespace tbdsim {

struct MemoryPlan {
  MemoryUse use;
  Bytes context;          // CUDA context and libraries, and what the driver adds by rounding up
  Bytes kept_workspaces;  // of libraries, which stay once they are made; part of `use`
  Bytes autotuning;       // further bytes that the first iteration needed to time algorithms; in no total
  Bytes fragments;  // held by the allocator for nothing, where that may decide what fits (fragments.h); in no
                    // total
  // True where the scratch memory of the fastest algorithms does not fit (scratch_memory.h).
  bool scratch_limited = false;
  int peak_kernel = 0;  // index of the kernel at which most is alive

  [[nodiscard]] Bytes model() const { return use.total(); }
  [[nodiscard]] Bytes total() const { return model() + context; }
  [[nodiscard]] Bytes needed() const { return total() + fragments; }  // to fit a GPU
};

// The part of a step that plan_memory needs, for every batch.
struct MemoryOutline {
  // Memory at one kernel.
  struct Alive {
    int kernel = 0;
    ByCategory<Size> tensors;  // with the kernel's temporary tensors as workspace
    Size all;                  // their sum
  };
  struct Parameters {
    MemoryCategory category = MemoryCategory::weights;
    Size bytes;              // of each tensor
    std::int64_t count = 0;  // of this size
  };
  // Candidates for the peak: kernels at which no other has more bytes, both fixed and for each sample.
  std::vector<Alive> peaks;
  std::vector<Alive> convolutions;  // all of them: workspaces depend on the algorithm
  std::vector<PoolBlocks> pool;     // of a plan made before the run
  std::vector<Parameters> parameters;
  Size library_state;  // what libraries keep for the backward pass, in no block of the pool
};

// `planned`: with the pool, which allocators need that plan memory before the run. Throws ModelError for more
// bytes than 64 bits hold.
[[nodiscard]] MemoryOutline memory_outline(const TrainingStep& step, bool planned = true);

// `costs`: of the step's kernels at this batch; only the workspaces of convolutions are used. `device`: its
// page matters to plans made before the run in blocks of exact sizes.
[[nodiscard]] MemoryPlan plan_memory(const MemoryOutline& outline, const TrainingStep& step,
                                     std::span<const KernelCost> costs, double batch,
                                     const Framework& framework, const DeviceMemory& device = {});

// The memory of one of several GPUs where MXNet's key-value store adds gradients on the GPUs: each updates
// its part of the parameters, with that part of their state, a buffer to add up and one for every other GPU's
// gradients.
[[nodiscard]] MemoryPlan on_one_of(std::int64_t gpus, MemoryPlan plan, const Framework& framework);

// The largest batch up to `most` for which `fits`; 0 when not even one sample does. Memory grows with the
// batch but for workspaces; where these shrink, a batch that fits and whose next does not.
[[nodiscard]] std::int64_t largest_batch(const std::function<bool(std::int64_t batch)>& fits,
                                         std::int64_t most);

}  // namespace tbdsim
