// A training run by names: who trains what, on which hardware, with how many samples in an iteration.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "graphs/convergence.h"
#include "graphs/model.h"
#include "hwspecs/base/quantity.h"
#include "simulate/communication/cluster.h"
#include "simulate/workload/training_choices.h"

namespace tbdsim {

inline constexpr std::int64_t kMostSamples = 1'000'000'000;  // the largest --batch

inline constexpr std::string_view kSyntheticInput = "synthetic";
inline constexpr std::string_view kRealInput = "real";

// How a batch gets from the host to the GPU. uncounted: its time is no part of the prediction; overlapped:
// from pinned memory beside the kernels, by a stream of its own; pinned, pageable: between two iterations,
// from memory of that kind.
enum class InputCopies : std::uint8_t { uncounted, overlapped, pinned, pageable };
inline constexpr std::array<std::string_view, 4> kInputCopiesNames = {"uncounted", "overlapped", "pinned",
                                                                      "pageable"};

// Where samples come from; empty members: as the framework and the data set have it (loader.h).
struct SampleInput {
  std::string source{};                   // kSyntheticInput: made up on the GPU; kRealInput: read and decoded
  std::optional<std::int64_t> workers{};  // of a machine, which decode; 0: the training loop decodes
  std::optional<Seconds> sample_time{};   // in which one worker reads, decodes and augments a sample
  std::optional<std::int64_t> cores{};    // of a machine's CPUs; empty: as its file has them
  std::optional<Bytes> sample_bytes{};    // of one in storage
  std::optional<BytesPerSecond> storage{};  // at which a machine reads samples; empty: they are in its memory
  InputCopies copies = InputCopies::uncounted;
};

// Names are of the catalogue, or paths to YAML files.
struct Scenario {
  std::string model{};
  std::string framework{};
  std::string gpu{};        // empty: the GPU of the cluster's machine
  std::int64_t batch = 1;   // samples in an iteration, on each GPU
  std::int64_t tokens = 0;  // instead of the batch: padded steps of all its samples together; 0: none
  std::string variant{};    // empty: the one the framework trains
  std::string precision{};  // empty: the one in which the model was captured, or fp32
  std::string profile{};    // empty: the GPU's own, its chip's, its architecture's or the generic one
  std::string dataset{};    // empty: the variant's
  std::string target{};     // quality to train to; kUsualTarget: the model's; empty: none is asked for
  double epochs = 0;        // to the target; 0: those that were measured for it
  Sizes sizes{};            // instead of the model's own: sequence_length, image_size, rois
  SampleInput input{};
  TrainingChoices training{};  // weights that are trained, optimizer, accumulation, recomputation, offload
  Cluster cluster{};           // one GPU by default
};

}  // namespace tbdsim
