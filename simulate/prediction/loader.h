// The loader of a training run: the worker threads or processes of a host that read, decode and augment
// samples. With n workers for each GPU, theta the time of one worker for a sample (s), beta the samples of an
// iteration, b the bytes of a sample in storage, S the rate of storage (B/s), which the G GPUs of a machine
// share, and c the time of the batch's copy to the GPU (s), a batch takes
//
//   decoding = theta * beta / n    s; n at most the CPU cores of the machine over its GPUs
//   reading = b * beta * G / S     s; 0 for samples in the host's memory
//   iteration = max(training, decoding, reading)      workers decode and read beside the training, however deep
//                                                     they prefetch; likewise c where copies are overlapped
//   iteration = training + decoding + reading         no workers: the training loop decodes, in one thread for
//                                                     each GPU
//   training + c for training where copies are not overlapped
#pragma once

#include <string_view>

#include "graphs/dataset.h"
#include "hwspecs/base/quantity.h"
#include "simulate/framework/launch_model.h"
#include "simulate/prediction/scenario.h"

namespace tbdsim {

struct Loader {
  Seconds sample_time;     // theta; 0: samples are made up on the GPU, or their time is unknown
  Seconds read_time{};     // b / S
  double workers = 0;      // 0: the training loop decodes
  bool is_shared = false;  // the workers are of a machine and serve all its GPUs; otherwise of each GPU
  std::string_view key{};  // of the framework's launch model that gives the workers; empty: the scenario does

  [[nodiscard]] bool in_loop() const { return sample_time + read_time > Seconds(0) && workers == 0; }
  // Threads that decode for one of the `gpus` GPUs of a machine with so many CPU cores for each; cores 0:
  // unknown.
  [[nodiscard]] double threads(int gpus, double cores) const;
};

// The loader of a model's samples; `dataset` may be none. Throws UsageError for what only real samples have
// beside synthetic input, and for real input of samples whose time, or size in storage that is given, is
// unknown.
[[nodiscard]] Loader loader_of(const SampleInput& input, const LaunchModel& launch_model,
                               std::string_view model, const Dataset* dataset);

}  // namespace tbdsim
