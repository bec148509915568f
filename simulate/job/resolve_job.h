// Everything that the names of a job stand for.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "hwspecs/gpu_spec.h"
#include "hwspecs/machine_spec.h"
#include "simulate/job/job_request.h"
#include "simulate/plan/search.h"
#include "simulate/prediction/uncertainty.h"
#include "simulate/workload/spec_cache.h"

namespace tbdsim {

// A choice that nobody asked for.
struct Assumption {
  std::string what;   // "machine"
  std::string value;  // "dgx_h100: NVIDIA DGX H100, eight H100"
  std::string why;    // "usual for h100_sxm"
};

struct ResolvedJob {
  std::shared_ptr<const GpuSpec> gpu;
  std::string machine;  // its name
  std::string network;  // title of the link between machines; empty: none
  std::shared_ptr<const Calibration> calibration;
  std::string precision = "bf16";
  PlanInputs inputs;                     // refers to the calibration
  FlopsPerSecond peak;                   // of the arithmetic of products, for MFU
  std::optional<ParallelLayout> layout;  // legal; none: to be searched
  // Keys and values of set_layout() that all searched layouts have.
  std::vector<std::pair<std::string, std::string>> fixed;
  // The word for what a batch of a captured step counts, "image", and the deviations of its prediction on one
  // GPU. Empty of a decoder.
  std::string sample;
  Effects of_one_gpu{};
  std::vector<Assumption> assumed;
  std::vector<KeyValue> said;  // as JobRequest::said

  [[nodiscard]] bool captured() const { return !sample.empty(); }
  // The word for one of what rates count: "token", or the sample of a captured step whose samples have no
  // length.
  [[nodiscard]] std::string counted() const {
    return captured() && inputs.job.sequence == 1 ? sample : "token";
  }
  // Memory of a GPU that a run can have.
  [[nodiscard]] Bytes usable() const { return gpu->usable_memory; }
};

// Throws UsageError, SpecError or ModelError.
[[nodiscard]] ResolvedJob resolve_job(const JobRequest& request, SpecCache& specs);

// Takes over the layout of the request, or what it says of those to be searched. Throws UsageError.
void take_layout(ResolvedJob& job, const JobRequest& request);

// "llama3_8b on 64 NVIDIA H100 SXM5 80 GB, 128 sequences of 4096, bf16, megatron".
[[nodiscard]] std::string title_of(const ResolvedJob& job);

// Every legal layout of the job that has what is fixed. Throws UsageError where there is none.
[[nodiscard]] std::vector<ParallelLayout> layouts_of(const ResolvedJob& job);

}  // namespace tbdsim
