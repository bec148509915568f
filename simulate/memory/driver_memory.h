// GPU memory that depends on the card beside the model: what the driver allocates for one request, for pools
// that request each block from it, and the workspaces of cuBLAS.
#pragma once

#include "hwspecs/base/quantity.h"
#include "hwspecs/gpu_spec.h"

namespace tbdsim {

// The driver's page size: 2 MiB from Pascal on (NVIDIA open-gpu-doc, "Pascal MMU Format Changes"). 0 before,
// where requests are not rounded: MXNet on a TITAN X of the Maxwell generation gets what it requests (mean
// error 1.8 %).
[[nodiscard]] Bytes driver_page(const GpuSpec& gpu);

// Bytes of the workspace that PyTorch gives a handle of cuBLAS: 32 MiB on compute capability 9 and 10, else 8
// MiB and 128 kiB (aten/src/ATen/cuda/CublasHandlePool.cpp, getChosenWorkspaceSize; from memory).
[[nodiscard]] Bytes cublas_workspace(const GpuSpec& gpu);

// Sizes of a card that plan_memory needs.
struct DeviceMemory {
  Bytes page;              // driver_page()
  Bytes cublas_workspace;  // of each handle
};

// Bytes allocated for a request of `bytes`, first rounded up to a multiple of 512 B:
//
//   whole pages                             above half a page
//   slab / floor(slab / bytes)              up to half a page: an even part of a slab of half a page
//
// With pages of 2 MiB a little more than half a MiB thus takes 1 MiB, a little more than 2 MiB takes 4.
// `bytes` itself where `page` is 0. The slab's size is fitted: Sockeye with recomputed attention, batch 256,
// on a TITAN Xp (fit rows) is 2 % off; with slabs of a whole page 17 %.
[[nodiscard]] Bytes from_driver(Bytes bytes, Bytes page);

}  // namespace tbdsim
