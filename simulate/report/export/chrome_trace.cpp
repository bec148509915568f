#include "simulate/report/export/chrome_trace.h"

#include <algorithm>
#include <cmath>
#include <ostream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "hwspecs/base/quantity_text.h"
#include "simulate/analysis/kernel_names.h"
#include "simulate/analysis/memory_breakdown.h"
#include "simulate/prediction/host_input.h"

namespace tbdsim {
namespace {

using Json = nlohmann::ordered_json;

// Numbers by which trace events name processes and threads; a stream is a thread of the GPU.
constexpr int kHost = 1, kGpu = 0;
constexpr int kIssuingThread = 1;
constexpr int kCompute = 7, kCopies = 14;  // as profilers number the first streams of CUDA

double microseconds(Seconds time) { return in_unit(time, "us"); }

struct Track {
  int process;
  int thread;
};

class Events {
 public:
  void name(Track track, std::string_view process, std::string_view thread) {
    meta(track, "process_name", process);
    meta(track, "thread_name", thread);
  }
  void slice(Track track, std::string_view category, const std::string& name, Seconds start, Seconds end,
             Json args) {
    constexpr Seconds kShortest(1e-10);  // less is rounding
    if (end - start < kShortest) return;
    events_.push_back({{"ph", "X"},
                       {"cat", category},
                       {"name", name},
                       {"pid", track.process},
                       {"tid", track.thread},
                       {"ts", microseconds(start)},
                       {"dur", microseconds(end - start)},
                       {"args", std::move(args)}});
  }
  // From a slice that starts at `from` to one that starts at `to`.
  void arrow(std::size_t id, Track a, Seconds from, Track b, Seconds to) {
    end_of_arrow("s", id, a, from);
    end_of_arrow("f", id, b, to);
    events_.back()["bp"] = "e";  // to the slice around its end
  }
  void counter(int process, std::string_view name, Seconds at, Json values) {
    events_.push_back({{"ph", "C"},
                       {"name", name},
                       {"pid", process},
                       {"ts", microseconds(at)},
                       {"args", std::move(values)}});
  }
  [[nodiscard]] Json take() { return std::move(events_); }

 private:
  void meta(Track track, const char* what, std::string_view name) {
    events_.push_back({{"ph", "M"},
                       {"name", what},
                       {"pid", track.process},
                       {"tid", track.thread},
                       {"args", {{"name", name}}}});
  }
  void end_of_arrow(const char* phase, std::size_t id, Track track, Seconds at) {
    events_.push_back({{"ph", phase},
                       {"cat", "ac2g"},
                       {"name", "ac2g"},
                       {"id", id},
                       {"pid", track.process},
                       {"tid", track.thread},
                       {"ts", microseconds(at)}});
  }

  Json events_ = Json::array();
};

std::string layer_of(const Kernel& kernel, const TrainingStep& step) {
  return kernel.layer < 0 ? "" : step.layers[static_cast<std::size_t>(kernel.layer)].name;
}

int stream_of(const Kernel& kernel, const KernelSpan& span) {
  return kernel.kind == KernelKind::transfer ? kCopies : kCompute + span.engine_thread;
}

// Arguments of a kernel's event; time, flops and bytes are of all repeats.
Json kernel_args(const Prediction& p, const Iteration& iteration, std::size_t k) {
  const Kernel& kernel = iteration.step->kernels[k];
  const KernelCost& cost = iteration.costs[k];
  const auto batch = static_cast<double>(iteration.batch);
  const auto repeat = static_cast<double>(kernel.repeat);
  return {{"layer", layer_of(kernel, *iteration.step)},
          {"phase", phase_name(kernel)},
          {"operation", kernel.op},
          {"kernel", kernel_name(kernel, cost.algorithm, p.framework->family, *p.gpu)},
          {"shape", shape_text(kernel, batch)},
          {"count", kernel.repeat},
          {"time_us", microseconds(cost.total * repeat)},
          {"flops", kernel.flops.at(batch) * repeat},
          {"bytes", (kernel.read_bytes.at(batch) + kernel.written_bytes.at(batch)) * repeat},
          {"bound", name_of(cost.bound)},
          {"provenance", name_of(cost.provenance)},
          {"stream", stream_of(kernel, iteration.timeline.kernels[k])},
          {"correlation", k + 1}};
}

// Adds the launching thread's events of a kernel (work, issue, wait, work) and the arrow to its execution.
// Work before further repeats is part of the issue.
void add_kernel(Events& events, const Prediction& p, const Iteration& iteration, std::size_t k) {
  const Kernel& kernel = iteration.step->kernels[k];
  const KernelSpan& span = iteration.timeline.kernels[k];
  const auto repeat = static_cast<double>(kernel.repeat);
  const HostWork work = host_work(kernel, static_cast<double>(iteration.batch), p.framework->launch_model);
  const Seconds issue = span.launch_start + work.pre_launch;
  const Seconds end_of_issue =
      std::min(span.launch_end, span.launch_start + (work.pre_launch + work.launch) * repeat);
  const Seconds end_of_wait = std::max(end_of_issue, span.launch_end - work.post_sync * repeat);
  const std::string layer = layer_of(kernel, *iteration.step);
  const Json args{{"layer", layer}, {"count", kernel.repeat}};
  Json issue_args = args;
  issue_args["correlation"] = k + 1;  // with the event on the GPU
  const bool copy = kernel.kind == KernelKind::transfer;
  const Track thread{kHost, kIssuingThread + span.engine_thread}, stream{kGpu, stream_of(kernel, span)};
  const std::string work_name = fmt::format("work for {}", kernel.op);
  events.slice(thread, "cpu_op", work_name, span.launch_start, issue, args);
  events.slice(thread, "cuda_runtime", copy ? "cudaMemcpyAsync" : "cudaLaunchKernel", issue, end_of_issue,
               std::move(issue_args));
  events.slice(thread, "cuda_runtime", "cudaStreamSynchronize", end_of_issue, end_of_wait, args);
  events.slice(thread, "cpu_op", work_name, end_of_wait, span.launch_end, args);
  events.slice(stream, copy ? "gpu_memcpy" : "kernel", fmt::format("{} {}", layer, kernel.op), span.start,
               span.end, kernel_args(p, iteration, k));
  events.arrow(k + 1, thread, issue, stream, span.start);
}

// After the last kernel the thread waits where the framework does, then runs what is done once an iteration.
void add_end(Events& events, const Prediction& p, const Iteration& iteration) {
  Seconds last;
  for (const KernelSpan& span : iteration.timeline.kernels) last = std::max(last, span.launch_end);
  const Seconds work = p.framework->launch_model.iteration_overhead;
  const Seconds end_of_wait = std::max(last, iteration.timeline.iteration - work);
  const Track thread{kHost, kIssuingThread};
  const Seconds end =
      p.framework->launch_model.sync_after_iteration ? iteration.timeline.iteration : last + work;
  if (p.framework->launch_model.sync_after_iteration)
    events.slice(thread, "cuda_runtime", "cudaStreamSynchronize", last, end_of_wait, Json::object());
  events.slice(thread, "cpu_op", "end of the iteration", end - work, end, Json::object());
  events.slice(thread, "memory", "wait for maps from the host", iteration.timeline.iteration,
               iteration.computing(), Json::object());
  events.slice(thread, "input", iteration.decodes_in_loop ? "decode samples" : "wait for samples",
               iteration.computing(), iteration.time(), Json::object());
}

// Counter events: bytes alive by category while each kernel runs.
void add_memory(Events& events, const Prediction& p, const Iteration& iteration) {
  for (const MemoryMoment& moment : memory_over_time(iteration, p.memory.kept_workspaces)) {
    const MemoryUse& use = moment.use;
    events.counter(kGpu, "memory in use, bytes", moment.start,
                   {{"weights", use[MemoryCategory::weights].si()},
                    {"weight_gradients", use[MemoryCategory::weight_gradients].si()},
                    {"feature_maps", use[MemoryCategory::feature_maps].si()},
                    {"workspace", use[MemoryCategory::workspace].si()},
                    {"dynamic", use[MemoryCategory::dynamic].si()}});
  }
}

// The makers of samples of an iteration to come: threads that each decode their share of a batch, and
// storage.
void add_loader(Events& events, const Prediction& p, const Iteration& iteration) {
  if (iteration.input == Seconds(0) || iteration.decodes_in_loop) return;
  int next = kIssuingThread + static_cast<int>(p.framework->launch_model.engine_threads);
  const auto add = [&](const std::string& name, const char* what, Seconds time) {
    const Track thread{kHost, next++};
    events.name(thread, "host", name);
    events.slice(thread, "input", what, Seconds(0), time, {{"samples", iteration.batch}});
  };
  const double threads = decoding_threads(p);  // maybe half a thread for each GPU
  for (int i = 0; i < std::max(1L, std::lround(threads)); ++i)
    add(fmt::format("decoding thread {}", i + 1), "decode samples", iteration.decode * (1 / threads));
  if (iteration.read > Seconds(0)) add("storage", "read samples", iteration.read);
}

// Metadata of the whole trace: the scenario.
Json metadata(const Prediction& p, const Iteration& iteration) {
  return {{"model", p.model->name},
          {"variant", p.scenario.variant},
          {"framework", p.framework->title},
          {"gpu", p.gpu->title},
          {"precision", p.scenario.precision},
          {"batch", iteration.batch},
          {"length", iteration.bucket.length},
          {"kernel_times", p.profile->title},
          {"iteration_us", microseconds(iteration.time())},
          {"gpu_busy_us", microseconds(iteration.timeline.gpu_busy)}};
}

}  // namespace

void write_trace(std::ostream& out, const Prediction& p) {
  const Iteration& iteration = p.typical();
  Events events;
  events.name({kHost, kIssuingThread}, "host", "issuing thread");
  events.name({kGpu, kCompute}, p.gpu->title, "compute");
  events.name({kGpu, kCopies}, p.gpu->title, "copies");
  if (p.framework->launch_model.engine_threads > 1) {
    events.name({kHost, kIssuingThread + 1}, "host", "second worker");
    events.name({kGpu, kCompute + 1}, p.gpu->title, "compute, second worker");
  }
  for (const std::size_t k : in_launch_order(iteration.timeline)) {
    if (iteration.costs[k].runs()) add_kernel(events, p, iteration, k);
  }
  add_end(events, p, iteration);
  add_loader(events, p, iteration);
  add_memory(events, p, iteration);
  const Json document{{"schemaVersion", 1},
                      {"displayTimeUnit", "ms"},
                      {"distributedInfo", {{"rank", 0}}},
                      {"deviceProperties", Json::array({{{"id", 0}, {"name", p.gpu->title}}})},
                      {"metadata", metadata(p, iteration)},
                      {"traceEvents", events.take()}};
  out << document.dump(-1, ' ', false, Json::error_handler_t::replace) << '\n';
}

}  // namespace tbdsim
