#include "simulate/prediction/loader.h"

#include <algorithm>
#include <string>

#include "hwspecs/base/error.h"

namespace tbdsim {
namespace {

// True for real input: asked for, or the framework's own.
bool is_real(const SampleInput& input, const LaunchModel& launch_model) {
  const char* const described = input.workers                            ? "input_workers"
                                : input.sample_time                      ? "input_time"
                                : input.storage                          ? "host.storage"
                                : input.copies != InputCopies::uncounted ? "host.copies"
                                                                         : nullptr;
  if (input.source == kSyntheticInput && described != nullptr) {
    throw UsageError(std::string(described) +
                     " is of samples that are decoded, and input is synthetic; expected input real");
  }
  if (!input.source.empty()) return input.source == kRealInput;
  return described != nullptr || launch_model.input_threads > 0;
}

// The time in which storage gives one sample; 0 where its rate is not given.
Seconds read_time(const SampleInput& input, const Dataset* dataset) {
  if (!input.storage) return {};
  const std::optional<Bytes> own = dataset == nullptr ? std::nullopt : dataset->sample_bytes;
  const std::optional<Bytes> bytes = input.sample_bytes ? input.sample_bytes : own;
  if (!bytes) {
    throw UsageError("host.storage is given, and the size of a sample" +
                     (dataset == nullptr ? "" : " of " + dataset->name) +
                     " is unknown; expected an input_bytes, as 110 kB");
  }
  return *bytes / *input.storage;
}

}  // namespace

double Loader::threads(int gpus, double cores) const {
  double of_gpu = is_shared ? workers / gpus : workers;
  if (workers == 0) of_gpu = 1;
  return cores > 0 ? std::min(of_gpu, cores) : of_gpu;
}

Loader loader_of(const SampleInput& input, const LaunchModel& launch_model, std::string_view model,
                 const Dataset* dataset) {
  if (!is_real(input, launch_model)) return {};
  Loader loader;
  if (dataset != nullptr) loader.sample_time = dataset->decode_time.value_or(Seconds(0));
  loader.sample_time = input.sample_time.value_or(loader.sample_time);
  loader.read_time = read_time(input, dataset);
  const bool asked = !input.source.empty() || input.workers;
  if (asked && loader.sample_time == Seconds(0)) {
    const std::string samples = dataset == nullptr
                                    ? "its samples are of no data set"
                                    : "the time to decode a sample of " + dataset->name + " is unknown";
    throw UsageError(std::string(model) + ": input is real, and " + samples +
                     "; expected an input_time, as 4 ms, or synthetic input");
  }
  if (input.workers) {
    loader.workers = static_cast<double>(*input.workers);
    loader.is_shared = true;
  } else {
    const bool usual = launch_model.input_threads > 0;
    loader.workers = usual ? launch_model.input_threads : launch_model.loader_threads;
    loader.key = usual ? "input_threads" : "loader_threads";
  }
  return loader;
}

}  // namespace tbdsim
