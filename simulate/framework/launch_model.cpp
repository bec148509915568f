#include "simulate/framework/launch_model.h"

#include <string_view>

namespace tbdsim {
namespace {

constexpr std::int64_t kMostKernels = 1'000'000;
constexpr std::int64_t kMostThreads = 1'024;
constexpr std::string_view kSourcedKeys[] = {"kernel",    "step",          "update", "wait",
                                             "iteration", "latency",       "gap",    "segment",
                                             "queue",     "input_threads", "workers"};

}  // namespace

LaunchModel override_execution(const SpecNode& node, LaunchModel execution) {
  node.map([&](SpecMap& m) {
    const auto time = [&](std::string_view key, Seconds& value) {
      if (const auto found = m.find(key)) value = found->quantity<Seconds>();
    };
    const auto flag = [&](std::string_view key, bool& value) {
      if (const auto found = m.find(key)) value = found->flag();
    };
    time("kernel", execution.kernel);
    time("step", execution.step);
    time("update", execution.update);
    time("wait", execution.wait);
    time("iteration", execution.iteration);
    time("latency", execution.latency);
    time("gap", execution.gap);
    if (const auto found = m.find("segment")) execution.segment = found->count(0, kMostKernels);
    flag("after_update", execution.after_update);
    if (const auto found = m.find("workers")) execution.workers = found->count(1, 2);
    flag("after_iteration", execution.after_iteration);
    if (const auto found = m.find("queue")) execution.queue = found->count(1, kMostKernels);
    if (const auto found = m.find("input_threads"))
      execution.input_threads = static_cast<int>(found->count(0, kMostThreads));
    for (auto& [name, source] : read_sources(m, kSourcedKeys)) execution.sources[name] = source;
  });
  return execution;
}

}  // namespace tbdsim
