#include "simulate/import/shaped_calls.h"

#include <cmath>
#include <map>
#include <memory>

#include <nlohmann/json.hpp>

#include "hwspecs/base/error.h"
#include "hwspecs/base/quantity.h"
#include "simulate/import/trace_events.h"

namespace tbdsim {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMostCalls = 20'000'000;
constexpr int kCudaMajor = 1'000;  // 12040: CUDA 12.4

std::vector<std::vector<std::int64_t>> sizes_of(const std::string& list) {
  std::vector<std::vector<std::int64_t>> all;
  const Json json = Json::parse(list, nullptr, false);
  if (!json.is_array()) return all;
  for (const Json& one : json) {
    std::vector<std::int64_t> sizes;
    for (const Json& size : one) {
      if (size.is_number_integer()) sizes.push_back(size.get<std::int64_t>());
    }
    all.push_back(std::move(sizes));
  }
  return all;
}

std::vector<std::string> texts_of(const std::string& list) {
  std::vector<std::string> all;
  const Json json = Json::parse(list, nullptr, false);
  if (!json.is_array()) return all;
  for (const Json& one : json) all.push_back(one.is_string() ? one.get<std::string>() : std::string());
  return all;
}

// Kernels of one call.
struct Launched {
  std::int64_t nanoseconds = 0, longest = -1, count = 0;
  std::string kernel;

  void add(const TraceEvent& event) {
    nanoseconds += event.duration;
    ++count;
    if (event.duration <= longest) return;
    longest = event.duration;
    kernel = event.name;
  }
};

using LaunchedByCall = std::map<std::int64_t, Launched>;  // by the ids of operations

// Calls by the text of what they are called with: a trace has few different ones.
struct Collected {
  std::map<std::string, std::size_t> kinds;  // to `calls`
  std::vector<ShapedCalls> calls;
  std::map<std::int64_t, std::size_t> operations;           // ids to `calls`
  LaunchedByCall launched, data_gradient, weight_gradient;  // the latter of kernels whose names say so
  std::vector<std::int64_t> order;                          // of ids that launched, as first met
};

void add_operator(const TraceEvent& event, Collected& all) {
  if (event.operation < 0 || event.shapes.empty()) return;
  if (all.operations.size() >= kMostCalls)
    throw UsageError("a trace of more than 20000000 operators; expected some steps");
  const std::string kind =
      event.name + '\n' + event.shapes + '\n' + event.strides + '\n' + event.types + '\n' + event.values;
  const auto [found, is_new] = all.kinds.emplace(kind, all.calls.size());
  if (is_new) {
    all.calls.push_back({.op = event.name,
                         .shapes = sizes_of(event.shapes),
                         .strides = sizes_of(event.strides),
                         .types = texts_of(event.types),
                         .values = texts_of(event.values)});
  }
  all.operations.insert_or_assign(event.operation, found->second);
}

void add_kernel(const TraceEvent& event, Collected& all) {
  if (event.operation < 0) return;
  if (all.launched.size() >= kMostCalls)
    throw UsageError("a trace of more than 20000000 operators with kernels; expected some steps");
  const auto [found, is_new] = all.launched.try_emplace(event.operation);
  if (is_new) all.order.push_back(event.operation);
  found->second.add(event);
  if (event.name.find("dgrad") != std::string::npos) all.data_gradient[event.operation].add(event);
  if (event.name.find("wgrad") != std::string::npos) all.weight_gradient[event.operation].add(event);
}

void add_call(const LaunchedByCall& all, std::int64_t id, ShapedKernels& kernels) {
  const auto found = all.find(id);
  if (found == all.end()) return;
  const Launched& launched = found->second;
  if (kernels.seconds.empty()) {
    kernels.longest = launched.kernel;
    kernels.count = launched.count;
  }
  kernels.seconds.push_back(kNano * static_cast<double>(launched.nanoseconds));
}

void collect(const TraceEvent& event, Collected& all) {
  if (event.phase != "X" || event.duration < 0) return;
  if (event.category == "cpu_op" || event.category == "Operator") add_operator(event, all);
  if (event.category == "kernel" || event.category == "Kernel") add_kernel(event, all);
}

}  // namespace

ShapedTrace read_shaped_trace(const std::filesystem::path& file) {
  Collected all;
  ShapedTrace trace;
  std::map<std::int64_t, std::string> gpus;
  visit_trace(file, {.event = [&](const TraceEvent& event) { collect(event, all); },
                     .device = [&](const TraceDevice& device) { gpus[device.id] = device.name; },
                     .number =
                         [&](const std::string& key, double value) {
                           if (key == "cuda_runtime_version" && value > 0 && value < 1'000'000)
                             trace.cuda = static_cast<int>(value) / kCudaMajor;
                         }});
  if (!gpus.empty()) trace.gpu = gpus.begin()->second;
  for (const std::int64_t id : all.order) {
    const auto operation = all.operations.find(id);
    if (operation == all.operations.end()) {
      trace.without_shapes += all.launched.at(id).count;
      continue;
    }
    ShapedCalls& calls = all.calls[operation->second];
    add_call(all.launched, id, calls.kernels);
    add_call(all.data_gradient, id, calls.data_gradient);
    add_call(all.weight_gradient, id, calls.weight_gradient);
  }
  for (ShapedCalls& calls : all.calls) {
    if (!calls.kernels.seconds.empty()) trace.calls.push_back(std::move(calls));
  }
  if (trace.calls.empty())
    throw SpecError({.file = std::make_shared<const std::string>(file.string())},
                    "no kernel of an operator whose shapes are known; expected "
                    "torch.profiler.profile(record_shapes=True)");
  return trace;
}

}  // namespace tbdsim
