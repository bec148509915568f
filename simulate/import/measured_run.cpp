#include "simulate/import/measured_run.h"

#include <algorithm>
#include <memory>

#include "hwspecs/base/error.h"
#include "simulate/import/kernel_sort.h"
#include "simulate/import/recognise.h"

namespace tbdsim {

void KernelSums::add(std::string_view name, StepPart part, double count, Seconds time) {
  kernels_.push_back(
      {.name = std::string(name), .kind = kernel_kind(name), .part = part, .count = count, .time = time});
}

void KernelSums::put_into(MeasuredRun& run) const {
  if (kernels_.empty())
    throw SpecError({.file = std::make_shared<const std::string>(run.file)},
                    "names no kernel; expected those of a run on a GPU (of PyTorch's profiler: "
                    "activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA])");
  const auto before = [](const MeasuredKernel& a, const MeasuredKernel& b) {
    return a.name != b.name ? a.name < b.name : a.part < b.part;
  };
  std::vector<MeasuredKernel> sorted = kernels_;
  std::stable_sort(sorted.begin(), sorted.end(), before);
  for (MeasuredKernel& kernel : sorted) {
    run.kernel_time += kernel.time;
    if (!run.kernels.empty() && run.kernels.back().name == kernel.name &&
        run.kernels.back().part == kernel.part) {
      run.kernels.back().count += kernel.count;
      run.kernels.back().time += kernel.time;
    } else {
      run.kernels.push_back(std::move(kernel));
    }
  }
  std::stable_sort(run.kernels.begin(), run.kernels.end(),
                   [](const MeasuredKernel& a, const MeasuredKernel& b) { return a.time > b.time; });
}

MeasuredRun read_measured_run(const std::filesystem::path& file) {
  const FileFormat format = require_format(file);
  if (format == FileFormat::chrome_trace) return read_chrome_trace(file);
  if (info_of(format).kind == ImportKind::kernels) return read_kernel_table(file);
  throw UsageError(
      file.string() + ": is of " + std::string(info_of(format).title) +
      "; expected kernels of a run: a trace of the PyTorch profiler, or CSV of nsys, nvprof or ncu");
}

}  // namespace tbdsim
