// What a framework does with a model. One YAML file for each version in simulate/frameworks/; a file that is
// `based_on` another gives only what differs.
#pragma once

#include <array>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "costmodel/estimate.h"
#include "graphs/lowering.h"
#include "graphs/rewrites/rewrites.h"
#include "hwspecs/base/quantity.h"
#include "hwspecs/base/sources.h"
#include "simulate/framework/launch_model.h"

namespace tbdsim {

// How replicas of a model exchange gradients unless a scenario says so: names of `exchange_methods`.
struct ExchangeDefaults {
  std::string within = "all_reduce";  // one machine
  std::string across = "all_reduce";  // several
  // Gradients are sent together until there are so many bytes: 0: each by itself.
  Bytes bucket;
  Bytes first_bucket;
  Bytes bucket_across;    // the same between machines, where a library of its own exchanges (Horovod)
  Seconds cycle;          // a thread looks so often for gradients, where there is a bucket; 0: none does
  bool fp32_amp = false;  // gradients of `amp` travel in fp32, as its variables are
  Seconds message;        // time of the exchange that each message costs beside its transfer
  // Part of the time of an all-reduce staged in host memory by which kernels beside it take longer; 0: as its
  // multiprocessors say.
  double interference = 0;
  double copy_interference = 0;  // the same where copy engines exchange, or the host does
  bool single_ring = false;      // of NCCL: version 1 makes one, in the order of the slots
  Sources sources;
};

// Whose rules cut memory into pieces as tensors come and go: nobody's (a pool of exact sizes), PyTorch's
// caching allocator and that of its versions up to 1.0, TensorFlow's best fit with coalescing
// (memory_arena.h).
enum class AllocatorPolicy { none, caching, caching_exact, bfc };
inline constexpr std::array<std::string_view, 4> kArenaNames = {"none", "caching", "caching_exact", "bfc"};

// How a framework takes memory for tensors.
struct Allocator {
  AllocatorPolicy arena = AllocatorPolicy::none;
  bool planned = false;           // shared as planned before the run, else as tensors come and go
  bool tries_algorithms = false;  // the first iteration times every algorithm of a convolution
  Bytes block;                    // sizes are multiples of this (0: any size),
  Bytes large_block;              // those above this multiples of this

  [[nodiscard]] Bytes taken_for(Bytes size) const;
};

struct Framework {
  std::string name;    // the file's stem
  std::string family;  // the file at the root of those it is based on: which variants of models it trains
  std::string title;   // with its version
  std::vector<std::string> versions;  // texts by which tables of runs name it, as "1.2.0"
  Lowering lowering;
  Rewrites rewrites;              // without any, steps are as lowered
  LibraryVersions libraries;      // major versions of those it calls: {cublas: 8, cudnn: 6}
  Bytes workspace_limit;          // convolution algorithms that need more scratch memory are not used
  bool nonfused_winograd = true;  // cuDNN's non-fused Winograd algorithms may be used
  bool pads_channels = false;     // it calls cuDNN's kernels that pad channels for tensor cores: 7.6.3 on
  Bytes context_memory;           // CUDA context and libraries, beside the model's tensors
  Allocator allocator;            // without one, as tensors come and go, of any size
  LaunchModel execution;          // without one, issuing takes no time
  ExchangeDefaults exchange;
  KernelFactors factors;        // times of kernels of a kind over what the GPU's profile says
  double half_convolution = 1;  // further, of convolutions in half precision on tensor cores
  // The same of all kernels on GPUs of a compute capability, "sm_80", that the version's libraries had only
  // just learnt (factors: {on: {sm_80: 1.1}}).
  std::map<std::string, double> factors_on;
  Sources sources;  // with those of the file it is based on, for what it does not give itself
};

// "factors.half_convolution".
inline constexpr std::string_view kHalfConvolution = "half_convolution";

// "sm_80": compute capability 8.0.
inline constexpr std::string_view kCapability = "sm_";
[[nodiscard]] bool is_capability(std::string_view name);

// `factors` with what holds on this GPU's compute capability, of convolutions in this arithmetic.
[[nodiscard]] KernelFactors factors_on(const Framework& framework, const GpuSpec& gpu, MathType math);

// Throws UsageError or SpecError. Changes are those of "framework", to what the file and those it is based on
// say.
[[nodiscard]] Framework read_framework(const std::filesystem::path& file, const SpecChanges& changes = {});

}  // namespace tbdsim
