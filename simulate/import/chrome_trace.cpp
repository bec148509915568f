// Traces of the PyTorch profiler (Kineto): version 1.8 wrote categories with capitals ("Kernel", "Operator",
// "Runtime"), later ones small letters ("kernel", "cpu_op", "cuda_runtime", "user_annotation").
#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "hwspecs/base/error.h"
#include "hwspecs/base/suggest.h"
#include "simulate/import/kernel_sort.h"
#include "simulate/import/measured_run.h"
#include "simulate/import/recognise.h"
#include "simulate/import/trace_events.h"

namespace tbdsim {
namespace {

constexpr std::size_t kMostKernels = 100'000'000;

struct Span {
  std::int64_t start = 0, end = 0;  // ns
};

// One execution. Small, as a trace has millions: the name is a number.
struct Execution {
  std::int64_t start, duration;
  std::int64_t correlation;
  std::uint32_t name;
  std::uint32_t device;
};

struct Launch {
  std::int64_t correlation;
  std::int64_t start;
  std::uint32_t thread;
};

struct MemoryEvent {
  std::int64_t time, device, bytes, allocated;
};

// Numbers of texts in the order they are first met.
class Names {
 public:
  std::uint32_t number(const std::string& text) {
    const auto [at, is_new] = numbers_.emplace(text, static_cast<std::uint32_t>(numbers_.size()));
    if (is_new) texts_.push_back(&at->first);
    return at->second;
  }
  [[nodiscard]] const std::string& text(std::uint32_t number) const { return *texts_[number]; }

 private:
  std::map<std::string, std::uint32_t> numbers_;
  std::vector<const std::string*> texts_;
};

std::string in_small_letters(std::string text) {
  for (char& c : text) c = (c >= 'A' && c <= 'Z') ? static_cast<char>(c - 'A' + 'a') : c;
  return text;
}

// All that one pass over the file keeps.
struct Collected {
  std::vector<Execution> executions;
  std::vector<Launch> launches;
  std::vector<MemoryEvent> memory;
  std::map<std::string, Span> steps;                   // "ProfilerStep#12"
  std::map<std::uint32_t, std::vector<Span>> updates;  // of a thread
  std::set<std::uint32_t> step_threads;
  Names names, threads;
  std::map<std::int64_t, std::string> gpus;
};

bool on_gpu(const std::string& category) {
  return category == "kernel" || category == "gpu_memcpy" || category == "gpu_memset" ||
         category == "memcpy" || category == "memset";
}

bool launches_work(const std::string& category, const std::string& name) {
  if (category != "cuda_runtime" && category != "cuda_driver" && category != "runtime") return false;
  // A graph's kernels, of any part of the step, have the one launch of the graph.
  if (name.find("GraphLaunch") != std::string::npos) return false;
  return name.find("Launch") != std::string::npos || name.find("Mem") != std::string::npos;
}

void collect(const TraceEvent& event, Collected& all) {
  if (event.name == "[memory]") {
    all.memory.push_back(
        {event.start, event.device_type == 1 ? event.device : -1, event.bytes, event.allocated});
    return;
  }
  if (event.phase != "X" || event.duration < 0) return;
  const std::string category = in_small_letters(event.category);
  if (on_gpu(category)) {
    if (all.executions.size() >= kMostKernels)
      throw UsageError("a trace of more than 100000000 kernels; expected some steps");
    const auto device = static_cast<std::uint32_t>(std::clamp<std::int64_t>(event.device, 0, 65'535));
    all.executions.push_back(
        {event.start, event.duration, event.correlation, all.names.number(event.name), device});
    return;
  }
  if (launches_work(category, event.name)) {
    all.launches.push_back({event.correlation, event.start, all.threads.number(event.thread)});
    return;
  }
  if (category.starts_with("gpu_")) return;  // annotations once more, on the GPU's time line
  const Span span{event.start, event.start + event.duration};
  if (event.name.starts_with("ProfilerStep")) {
    all.steps.emplace(event.name, span);
    all.step_threads.insert(all.threads.number(event.thread));
  }
  if (event.name.starts_with("Optimizer.")) {
    const std::uint32_t thread = all.threads.number(event.thread);
    all.updates[thread].push_back(span);
    all.step_threads.insert(thread);
  }
}

// The device whose kernels take the most time.
std::uint32_t busiest(const std::vector<Execution>& executions) {
  std::map<std::uint32_t, std::int64_t> time;
  for (const Execution& one : executions) time[one.device] += one.duration;
  const auto most = std::max_element(time.begin(), time.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == time.end() ? 0 : most->first;
}

// Nanoseconds in which one execution runs at least.
std::int64_t busy_time(std::vector<Span> spans) {
  std::sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) { return a.start < b.start; });
  std::int64_t busy = 0, until = spans.empty() ? 0 : spans.front().start;
  for (const Span& span : spans) {
    busy += std::max<std::int64_t>(0, span.end - std::max(span.start, until));
    until = std::max(until, span.end);
  }
  return busy;
}

// Tells which part of the step a launch belongs to: inside a call of the optimizer it is the update's; the
// backward pass has a thread of its own.
class Parts {
 public:
  explicit Parts(Collected& all) : all_(all) {
    std::sort(all.launches.begin(), all.launches.end(),
              [](const Launch& a, const Launch& b) { return a.correlation < b.correlation; });
    for (auto& [thread, spans] : all.updates)
      std::sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) { return a.start < b.start; });
  }

  [[nodiscard]] StepPart of(std::int64_t correlation) const {
    const Launch* launch = launch_of(correlation);
    if (launch == nullptr || all_.step_threads.empty()) return StepPart::unknown;
    if (!all_.step_threads.contains(launch->thread)) return StepPart::backward;
    const auto spans = all_.updates.find(launch->thread);
    if (spans == all_.updates.end()) return StepPart::forward;
    const auto after =
        std::upper_bound(spans->second.begin(), spans->second.end(), launch->start,
                         [](std::int64_t time, const Span& span) { return time < span.start; });
    return after != spans->second.begin() && launch->start <= std::prev(after)->end ? StepPart::update
                                                                                    : StepPart::forward;
  }

 private:
  [[nodiscard]] const Launch* launch_of(std::int64_t correlation) const {
    const auto found = std::lower_bound(all_.launches.begin(), all_.launches.end(), correlation,
                                        [](const Launch& a, std::int64_t c) { return a.correlation < c; });
    return correlation >= 0 && found != all_.launches.end() && found->correlation == correlation ? &*found
                                                                                                 : nullptr;
  }

  const Collected& all_;
};

// The largest sum of allocated tensors of a device: as the trace has it, or by adding up what it allocates
// and frees, above what is there before.
std::optional<Bytes> memory_peak(std::vector<MemoryEvent> events, std::int64_t device) {
  std::erase_if(events, [&](const MemoryEvent& event) { return event.device != device; });
  if (events.empty()) return std::nullopt;
  std::stable_sort(events.begin(), events.end(),
                   [](const MemoryEvent& a, const MemoryEvent& b) { return a.time < b.time; });
  double peak = 0, sum = 0, least = 0;
  for (const MemoryEvent& event : events) {
    sum += static_cast<double>(event.bytes);
    least = std::min(least, sum);
    peak = std::max(peak, event.allocated >= 0 ? static_cast<double>(event.allocated) : sum - least);
  }
  return Bytes(peak);
}

void set_steps(const Collected& all, MeasuredRun& run) {
  if (all.steps.empty()) {
    run.notes.push_back(
        "no step is marked (profiler.step()): the run counts as one; --steps says how many it has");
    return;
  }
  run.steps = static_cast<double>(all.steps.size());
  run.steps_known = true;
  Span whole = all.steps.begin()->second;
  for (const auto& [name, span] : all.steps)
    whole = {std::min(whole.start, span.start), std::max(whole.end, span.end)};
  run.span = Seconds(kNano * static_cast<double>(whole.end - whole.start));
}

}  // namespace

MeasuredRun read_chrome_trace(const std::filesystem::path& file) {
  Collected all;
  visit_trace(file, {.event = [&](const TraceEvent& event) { collect(event, all); },
                     .device = [&](const TraceDevice& device) { all.gpus[device.id] = device.name; }});
  MeasuredRun run{
      .file = file.string(), .tool = std::string(info_of(FileFormat::chrome_trace).title), .gpu = {}};
  set_steps(all, run);
  const std::uint32_t device = busiest(all.executions);
  if (const auto gpu = all.gpus.find(device); gpu != all.gpus.end()) run.gpu = gpu->second;
  run.memory_peak = memory_peak(std::move(all.memory), device);

  const Parts parts(all);
  struct Sum {
    double count = 0;
    std::int64_t time = 0;
  };
  std::map<std::pair<std::uint32_t, StepPart>, Sum> sums;
  std::vector<Span> spans;
  std::set<std::uint32_t> devices;
  for (const Execution& one : all.executions) {
    devices.insert(one.device);
    if (one.device != device) continue;
    spans.push_back({one.start, one.start + one.duration});
    Sum& sum = sums[{one.name, parts.of(one.correlation)}];
    ++sum.count;
    sum.time += one.duration;
  }
  KernelSums kernels;
  for (const auto& [key, sum] : sums)
    kernels.add(all.names.text(key.first), key.second, sum.count,
                Seconds(kNano * static_cast<double>(sum.time)));
  kernels.put_into(run);
  run.busy = Seconds(kNano * static_cast<double>(busy_time(std::move(spans))));
  if (devices.size() > 1)
    run.notes.push_back(
        fmt::format("kernels of {} GPUs; those of GPU {}, the busiest, are counted", devices.size(), device));
  return run;
}

}  // namespace tbdsim
