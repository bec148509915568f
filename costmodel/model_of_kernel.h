// The part of a profile from which a kernel's time comes.
#pragma once

#include "costmodel/calibration.h"
#include "costmodel/families/families.h"
#include "graphs/kernel.h"

namespace tbdsim {

// The library whose kernel computes attention on the GPU. PyTorch (by_gpu) calls cuDNN on GPUs of compute
// capability 9.0 and 10.0, FlashAttention 2 on others from 8.0 on, before that its memory-efficient kernel.
// Source: aten/native/transformers/cuda/sdp_utils.cpp, check_prefer_cudnn_attention and
// check_flash_attention_hardware_support; PyTorch 2.11 on an H100 runs cuDNN's kernels in every step of half
// precision (calibrate/records/h100_sxm/step_kernels.csv.gz).
[[nodiscard]] AttentionKernel attention_on(const GpuSpec& gpu, AttentionKernel asked);

// True where the time of a recurrent layer is that of one kernel for all steps: the profile has such kernels
// in fp16, and the GPU is of compute capability 8.0 or later, but for 8.6, and has the multiprocessors that
// hold the weights of 1,024 units (98). Source: PyTorch, aten/src/ATen/native/cudnn/RNN.cpp, get_algo and
// use_persist_device_heuristics, whose rule for Volta, by the number of steps, is left out: no profile of it
// has such kernels. Their name on an H100 (ampere_lstm_tile16) and that rule say that an A100 runs the same.
[[nodiscard]] bool runs_persistent_kernels(MathType math, const Calibration& calibration);

// True for the family whose model gives the call's time on the GPU.
template <class Family>
[[nodiscard]] bool gives_time(const typename Family::Call& call, MathType math,
                              const Calibration& calibration) {
  if constexpr (std::is_same_v<typename Family::Call, RecurrentCall>) {
    const bool persistent = fits_persistent_kernel(call) && runs_persistent_kernels(math, calibration);
    return persistent == Family::persistent;
  } else {
    return belongs_to<Family>(call);
  }
}

// The model of the kernel's family in the arithmetic it is computed in (KernelCost::math); null where its
// time comes from the roofline.
[[nodiscard]] const FamilyModel* model_of_kernel(const Kernel& kernel, double batch, MathType math,
                                                 const Calibration& calibration);

}  // namespace tbdsim
