// Kernels that a profiler saw in a run.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hwspecs/base/quantity.h"

namespace tbdsim {

// The part of a training step that launched a kernel.
enum class StepPart : std::uint8_t { unknown, forward, backward, update };
inline constexpr std::array<std::string_view, 4> kStepPartNames = {"-", "forward", "backward", "update"};

// Executions of one kernel by one part of the step.
struct MeasuredKernel {
  std::string name{};
  std::string_view kind{};  // one of kKernelKindNames, or of those of kernel_sort.h
  StepPart part = StepPart::unknown;
  double count = 0;  // in the whole run
  Seconds time{};    // of all of them
};

// Sums over the whole run, of the GPU that was busy longest.
struct MeasuredRun {
  std::string file{};
  std::string tool{};  // title of the format
  std::string gpu{};   // as the profiler names it, or empty
  double steps = 1;    // training steps in it
  bool steps_known = false;
  std::vector<MeasuredKernel> kernels{};  // the most time first
  Seconds kernel_time{};                  // their sum
  std::optional<Seconds> busy{};          // in which one of them ran at least
  std::optional<Seconds> span{};          // from the first step's begin to the last one's end
  std::optional<Bytes> memory_peak{};     // allocated tensors, on the GPU
  std::vector<std::string> notes{};
};

// Readers of traces and tables. Throw UsageError for a file that cannot be read, SpecError for one of another
// format or with values that cannot be, and for one without kernels.
[[nodiscard]] MeasuredRun read_chrome_trace(const std::filesystem::path& file);
[[nodiscard]] MeasuredRun read_kernel_table(const std::filesystem::path& file);  // CSV of nsys, nvprof, ncu

// Whichever of them suits the file.
[[nodiscard]] MeasuredRun read_measured_run(const std::filesystem::path& file);

// Adds executions to the kernel of that name and part; `index` finds it again.
class KernelSums {
 public:
  void add(std::string_view name, StepPart part, double count, Seconds time);
  // Sets `kernels` and `kernel_time`. Throws SpecError where there are none.
  void put_into(MeasuredRun& run) const;

 private:
  std::vector<MeasuredKernel> kernels_;
};

}  // namespace tbdsim
