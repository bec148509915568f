#include "simulate/framework/launch_model.h"

#include <string_view>

namespace tbdsim {
namespace {

constexpr std::int64_t kMostKernels = 1'000'000;
constexpr std::int64_t kMostThreads = 1'024;
constexpr std::string_view kSourcedKeys[] = {
    "kernel",         "step",         "update",          "cudnn",          "wait",    "iteration",
    "latency",        "gap",          "queue",           "segment",        "workers", "input_threads",
    "loader_threads", "after_update", "after_iteration", "one_interpreter"};

}  // namespace

LaunchModel override_launch_model(const SpecNode& node, LaunchModel launch_model) {
  node.map([&](SpecMap& m) {
    const auto time = [&](std::string_view key, Seconds& value) {
      if (const auto found = m.find(key)) value = found->quantity<Seconds>();
    };
    const auto flag = [&](std::string_view key, bool& value) {
      if (const auto found = m.find(key)) value = found->flag();
    };
    if (m.find("kernel")) launch_model.library_call = Seconds(0);
    time("kernel", launch_model.launch_overhead);
    time("step", launch_model.loop_step_overhead);
    time("update", launch_model.update_overhead);
    time("cudnn", launch_model.library_call);
    time("wait", launch_model.sync_overhead);
    time("iteration", launch_model.iteration_overhead);
    time("latency", launch_model.launch_latency);
    time("gap", launch_model.kernel_gap);
    if (const auto found = m.find("segment")) launch_model.kernels_per_sync = found->count(0, kMostKernels);
    flag("after_update", launch_model.sync_after_update);
    if (const auto found = m.find("workers")) launch_model.engine_threads = found->count(1, 2);
    flag("after_iteration", launch_model.sync_after_iteration);
    flag("one_interpreter", launch_model.one_interpreter);
    if (const auto found = m.find("queue")) launch_model.launch_queue_depth = found->count(1, kMostKernels);
    if (const auto found = m.find("input_threads"))
      launch_model.input_threads = static_cast<int>(found->count(0, kMostThreads));
    if (const auto found = m.find("loader_threads"))
      launch_model.loader_threads = static_cast<int>(found->count(1, kMostThreads));
    for (auto& [name, source] : read_sources(m, kSourcedKeys)) launch_model.sources[name] = source;
  });
  return launch_model;
}

}  // namespace tbdsim
