// A framework version: lowering, libraries, launch model, allocator, synchronization. One YAML file for each
// version in simulate/frameworks/; a file that is `based_on` another gives only what differs.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "costmodel/estimate.h"
#include "graphs/lowering.h"
#include "graphs/precision.h"
#include "graphs/rewrites/rewrites.h"
#include "hwspecs/base/quantity.h"
#include "hwspecs/base/sources.h"
#include "simulate/framework/allocator_spec.h"
#include "simulate/framework/launch_model.h"
#include "simulate/framework/sync_defaults.h"

namespace tbdsim {

struct Framework {
  std::string name;    // the file's stem
  std::string family;  // the file at the root of those it is based on: which variants of models it trains
  std::string title;   // with its version
  std::vector<std::string> versions;  // texts by which tables of runs name it, as "1.2.0"
  std::int64_t fitted_runs = 0;       // training runs that its constants were fitted to or held against
  // Standard deviation of ln(time) over runs of code that the file stands for, beyond what other effects
  // explain: code that is tuned anew for each GPU and year. 0: no more than of any version.
  double spread = 0;

  Lowering lowering;
  Rewrites rewrites;              // none: steps are as lowered
  LibraryVersions libraries;      // major versions of the libraries it calls: {cublas: 8, cudnn: 6}
  Bytes workspace_limit;          // convolution algorithms that need more workspace are not used
  bool nonfused_winograd = true;  // cuDNN's non-fused Winograd algorithms may be used
  PadsChannels pads_channels = PadsChannels::never;  // for cuDNN's tensor-core kernels: from 7.6.3 on
  // Precision of numbers in fp32 on GPUs with TF32 where a program does not say: fp32, tf32 or
  // tf32_convolutions.
  std::string_view default_precision = kPrecisions[0].name;

  Bytes context_memory;      // CUDA context and libraries, beside the model's tensors
  Allocator allocator;       // default: tensors are allocated as they come and go, in blocks of any size
  LaunchModel launch_model;  // default: launching takes no time
  SyncDefaults sync;

  // Factors on kernel times.
  KernelFactors factors;        // by kind of kernel
  double half_convolution = 1;  // further, for convolutions in half precision on tensor cores
  // Further factors for all kernels by the GPU's compute capability ("sm_80"), where the version's libraries
  // were new to it.
  std::map<std::string, double> factors_on;

  Sources sources;  // by key; of the file it is based on for the keys that it does not give itself
};

// Key of Framework::half_convolution in `factors`.
inline constexpr std::string_view kHalfConvolution = "half_convolution";

// Whether a name is a compute capability: "sm_80" for 8.0.
inline constexpr std::string_view kCapability = "sm_";
[[nodiscard]] bool is_capability(std::string_view name);

// All factors on kernel times that apply on this GPU, to convolutions in this arithmetic.
[[nodiscard]] KernelFactors factors_on(const Framework& framework, const GpuSpec& gpu, MathType math);

// `based_on` names a file in the same folder or in `catalogue`, the catalogue's folder of frameworks.
// `changes` to the spec "framework" are applied to the file and those it is based on. Throws UsageError or
// SpecError.
[[nodiscard]] Framework read_framework(const std::filesystem::path& file, const SpecChanges& changes = {},
                                       const std::filesystem::path& catalogue = {});

}  // namespace tbdsim
