// The chain from a scenario to a prediction: graph -> kernels -> costs -> timeline -> memory. Every step is a
// public function of its own; this runs them all.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "costmodel/fast/rate_cache.h"
#include "simulate/communication/sync_timeline.h"
#include "simulate/memory/memory_plan.h"
#include "simulate/timeline/timeline.h"
#include "simulate/workload/spec_cache.h"

namespace tbdsim {

inline constexpr std::int64_t kMostSamples = 1'000'000'000;  // the largest --batch

// Names of the catalogue or paths to YAML files.
struct Scenario {
  std::string model{};
  std::string framework{};
  std::string gpu{};
  std::int64_t batch = 1;   // samples in an iteration
  std::int64_t tokens = 0;  // instead of the batch: steps of all samples together, padding included; 0: none
  std::string variant{};    // empty: the one the framework trains
  std::string precision = "fp32";
  std::string profile{};  // empty: the GPU's own, its architecture's or the generic one
  std::string dataset{};  // empty: the variant's
  Sizes sizes{};          // instead of the model's own: sequence_length, image_size, rois
  Cluster cluster{};      // one GPU unless it says more; the batch is that of each
};

// Cores of the host over which CPU utilization is reported: the TBD paper, Table IV.
inline constexpr int kHostCores = 28;

struct Interval {
  double low = 0;
  double high = 0;
};

// An iteration over samples of one padded length.
struct Iteration {
  LengthBucket bucket;
  double share = 1;  // of all iterations
  std::int64_t batch = 1;
  double units = 1;  // of what throughput counts
  const TrainingStep* step = nullptr;
  const MemoryOutline* memory = nullptr;         // of the step
  std::span<const OffloadedActivation> on_host;  // maps of the step
  std::span<const KernelRuns> runs;              // of the step's kernels
  std::vector<KernelCost> costs;                 // one for each kernel of the step
  ConvWorkCache demands;                         // worked out when rates change
  Timeline timeline;
  Seconds copies;  // by which the timeline is longer where maps come back from the host
  Seconds decode;  // of one thread for the batch's samples; 0 where it is not known or they are made up
  Seconds input;   // of all threads that decode: samples come no faster, however far ahead they are fetched

  SyncTime exchange;  // nothing on one GPU

  [[nodiscard]] Seconds computing() const { return timeline.iteration + copies; }
  [[nodiscard]] Seconds time() const { return std::max(computing() + exchange.added(), input); }
  [[nodiscard]] Seconds time_alone() const { return std::max(computing(), input); }  // of one GPU
};

// What a part of an iteration is limited by: as kernels are while the GPU is busy; while it is idle the CPU
// that issues work, waits for copies and works on them, the samples that are not there yet, or what other
// GPUs send.
enum class Limit { compute, memory, overhead, cpu, input, exchange };
inline constexpr std::array<std::string_view, 6> kLimitNames = {"compute", "memory", "overhead",
                                                                "cpu",     "input",  "exchange"};
[[nodiscard]] constexpr std::string_view name_of(Limit limit) {
  return kLimitNames[static_cast<std::size_t>(limit)];
}

struct Prediction {
  Scenario scenario;  // with the variant's name and the batch that is trained filled in
  std::int64_t batch_asked = 1;
  bool batch_limited = false;  // the model's code takes no batch as large as that
  const ModelFile* model = nullptr;
  const GpuSpec* gpu = nullptr;
  const Framework* framework = nullptr;
  const Profile* profile = nullptr;
  const Calibration* calibration = nullptr;            // of the library's card, or
  std::shared_ptr<const Calibration> own_calibration;  // of one with other rates, which with_rates() makes
  const Dataset* dataset = nullptr;                    // or none
  double samples_trained_on = 0;                       // of the data set in an epoch
  std::vector<Iteration> iterations;                   // one for each padded length; at least one
  std::optional<SyncPlan> exchange;                    // of several GPUs
  std::size_t largest = 0;                             // the one that needs most memory
  MemoryPlan memory;                                   // of that one
  bool fits = false;
  Flops flops;          // of an iteration
  FlopsPerSecond peak;  // of the arithmetic the precision uses

  [[nodiscard]] std::int64_t ranks() const { return scenario.cluster.ranks(); }

  // Means over the iterations; throughputs of all GPUs together, the batch of one.
  [[nodiscard]] Seconds iteration_time() const;
  [[nodiscard]] double batch() const;
  [[nodiscard]] double throughput() const;  // units per second
  // 80 % of measured times are expected within time / factor to time x factor.
  [[nodiscard]] double interval_factor() const;
  [[nodiscard]] Interval throughput_interval() const;
  [[nodiscard]] double efficiency() const;     // throughput over that of as many GPUs alone
  [[nodiscard]] Seconds exposed_time() const;  // of an iteration: it waits for others, or is slowed by them
  [[nodiscard]] double samples_per_second() const;
  [[nodiscard]] double share(Limit limit) const;  // of the time; all of them make 1
  [[nodiscard]] Limit bound() const;              // the largest share
  // Where most of the time goes.
  [[nodiscard]] const Iteration& typical() const;
  // Samples that fit into the GPU's memory where a batch is of the length that needs most; 0: none does.
  [[nodiscard]] std::int64_t largest_batch() const;
  // Of a batch of that length.
  [[nodiscard]] MemoryPlan memory_at(std::int64_t batch) const;
  // One pass over the samples of the data set that are trained on (those that fit a bucket), and its price;
  // none where the data set or the GPU does not say.
  [[nodiscard]] std::optional<Seconds> epoch_time() const;
  [[nodiscard]] std::optional<Dollars> epoch_cost() const;
  // Of all GPUs; none where the GPU does not say.
  [[nodiscard]] std::optional<Dollars> price() const;
  [[nodiscard]] std::optional<DollarsPerSecond> rent() const;
};

// Without a GPU that of the cluster's machine. Throws UsageError, SpecError or ModelError. A batch that does
// not fit still gets its hypothetical throughput. A cache makes many predictions of few models faster and
// changes no number.
[[nodiscard]] Prediction predict(const Scenario& scenario, SpecCache& specs, EstimateCache* cache = nullptr);

// The same on a card that differs in its rates only (clocks, bandwidths, units, memory): what if. Several
// times as fast as a prediction of its own. `gpu` must outlive it.
[[nodiscard]] Prediction with_rates(Prediction prediction, const GpuSpec& gpu);

// The same by other GPUs together: only what they exchange is simulated again. Throws as machine_for and
// plan_sync.
[[nodiscard]] Prediction with_cluster(Prediction prediction, const Cluster& cluster, SpecCache& specs);

// The same by one GPU, or by those that make the exchange, as planned for the prediction's framework and
// card.
[[nodiscard]] Prediction with_sync(Prediction prediction, const std::optional<SyncPlan>& exchange);

// Times by the factors of the kernels' kinds.
void scale(std::vector<KernelCost>& costs, const TrainingStep& step, const KernelFactors& factors);

// The mean time of an iteration if the CPU side and the factors were those of `framework`, which differs from
// the one predicted for in nothing else: only the clocks run again.
[[nodiscard]] Seconds iteration_time_with(const Framework& framework, const Prediction& prediction);

}  // namespace tbdsim
