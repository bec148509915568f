#include "simulate/communication/sync_timeline.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include <boost/math/distributions/normal.hpp>

#include "simulate/communication/gradient_buckets.h"
#include "simulate/communication/synced_norms.h"
#include "simulate/communication/table_exchange.h"

namespace tbdsim {
namespace {

constexpr std::int64_t kWholeArray = 1'000'000;  // elements: MXNET_KVSTORE_BIGARRAY_BOUND
constexpr std::int64_t kKeyFactor = 9973;        // ps-lite's EncodeDefaultKey
// Times that each byte of an all-reduce passes the GPU's own memory: read to send and to add, written twice.
constexpr double kMemoryPasses = 4;

// Kernels that run one after another; of two concurrent chains, the first.
std::vector<std::size_t> in_order(const Timeline& timeline) {
  std::vector<std::size_t> kernels;
  Seconds end;
  for (std::size_t k = 0; k < timeline.kernels.size(); ++k) {
    const KernelSpan& span = timeline.kernels[k];
    if (span.async_update || span.start < end) continue;
    kernels.push_back(k);
    end = span.end;
  }
  return kernels;
}

constexpr double kEndless = std::numeric_limits<double>::infinity();

struct Interval {
  double start = 0, end = 0;
};

// Length of the union of intervals up to `limit`.
double covered(std::vector<Interval> intervals, double limit) {
  std::sort(intervals.begin(), intervals.end(),
            [](const Interval& a, const Interval& b) { return a.start < b.start; });
  double sum = 0;
  double last = 0;
  for (const Interval& interval : intervals) {
    const double end = std::min(interval.end, limit);
    sum += std::max(0.0, end - std::max(interval.start, last));
    last = std::max(last, end);
  }
  return sum;
}

// Buckets on their way through the stages. Times in seconds from the start of the iteration.
class Pipeline {
 public:
  // `computed`: time at which the last gradient is computed.
  // `fullest`: of the servers on GPUs, over the mean.
  Pipeline(const TrainingStep& step, const Timeline& timeline, const SyncPlan& plan, double computed,
           double fullest)
      : step_(step),
        timeline_(timeline),
        in_order_(in_order(timeline)),
        plan_(plan),
        computed_(computed),
        fullest_(fullest),
        free_(plan.stages.size()) {}

  // Sends a bucket through the stages [first, end). Returns when it has passed them.
  double send(const GradientBucket& bucket, std::size_t first, std::size_t end) {
    double at = bucket.ready;
    for (std::size_t s = first; s < end; ++s) {
      const SyncStage& stage = plan_.stages[s];
      double start = std::max(at, free_[s]);
      if (stage.on_gpu) start = next_gap(start);
      at = start + stage.time(Bytes(bucket.bytes), fullest_).si();
      free_[s] = at;
      all_.push_back({start, at});
      if (stage.in_host) continue;
      on_gpu_.push_back({start, at});
      flowing_ += (at - start) * stage.flowing(Bytes(bucket.bytes), fullest_);
    }
    return at;
  }

  // Seconds in which at least one stage works.
  [[nodiscard]] double busy() const { return covered(all_, kEndless); }
  // The part of it in which the GPU takes part.
  [[nodiscard]] double on_gpu() const { return covered(on_gpu_, kEndless); }
  // SMs that stages occupy, as a mean over the time in which the GPU takes part.
  [[nodiscard]] double mean_sms() const {
    double all = 0;
    for (const Interval& interval : on_gpu_) all += interval.end - interval.start;
    const double flowing = all > 0 ? flowing_ / all : 1;
    return std::min(plan_.sms, kSmsOfStart) * (1 - flowing) + plan_.sms * flowing;
  }
  // The part of that before the last gradient is computed.
  [[nodiscard]] double while_computing() const { return covered(on_gpu_, computed_); }

 private:
  // Start of a collective's kernel: at the end of the kernel that runs at `start`, for repeated kernels at
  // the end of one of them, at the latest one mean run time later; at `start` where none runs. Never later
  // than the last gradient, or `start` after it: updates wait for the exchange, and a kernel of a second
  // chain that outlasts the gradients must not hold up an earlier collective for longer than a later one.
  [[nodiscard]] double next_gap(double start) const {
    if (start >= computed_) return start;
    const auto k = std::lower_bound(
        in_order_.begin(), in_order_.end(), start,
        [&](std::size_t kernel, double at) { return timeline_.kernels[kernel].end.si() < at; });
    if (k == in_order_.end() || timeline_.kernels[*k].start.si() >= start) return start;
    const KernelSpan& span = timeline_.kernels[*k];
    const double mean = (span.end - span.start).si() / static_cast<double>(step_.kernels[*k].repeat);
    return std::min({span.end.si(), start + mean, computed_});
  }

  const TrainingStep& step_;
  const Timeline& timeline_;
  std::vector<std::size_t> in_order_;
  const SyncPlan& plan_;
  double computed_;
  double fullest_;
  std::vector<double> free_;
  std::vector<Interval> all_, on_gpu_;  // in which a stage works on a bucket
  double flowing_ = 0;                  // of on_gpu_, the seconds in which data flow at the links' rate
};

// Seconds that the next forward pass waits for parameters, which arrive in the order in which it needs them.
double forward_stall(const TrainingStep& step, const Timeline& timeline, double batch, double sent_bytes,
                     const SyncStage& stage, double fullest) {
  std::vector<double> arrival(step.layers.size(), 0.0);
  double at = 0;
  for (auto gradient = step.gradients.rbegin(); gradient != step.gradients.rend(); ++gradient) {
    at += stage.time(Bytes(gradient->elements.at(batch) * sent_bytes), fullest).si();
    arrival[static_cast<std::size_t>(gradient->layer)] = at;
  }
  double stall = 0;
  for (std::size_t k = 0; k < step.kernels.size(); ++k) {
    const Kernel& kernel = step.kernels[k];
    if (kernel.phase != Phase::forward || kernel.layer < 0) continue;
    const double needed = timeline.kernels[k].start.si() + stall;
    stall += std::max(0.0, arrival[static_cast<std::size_t>(kernel.layer)] - needed);
  }
  return stall;
}

// Seconds by which kernels take longer that run during `beside` seconds of a synchronization, which occupies
// `sms` SMs and has moved the part `hidden` of `bytes` when the GPU begins to wait for it.
double contention(const SyncPlan& plan, const GpuSpec& gpu, double sms, double beside, double hidden,
                  double bytes) {
  const double share =
      plan.interference > 0 ? plan.interference : std::min(0.5, sms / static_cast<double>(gpu.sm_count));
  return beside * share + kMemoryPasses * bytes * hidden / gpu.memory_bandwidth.si();
}

// Host work of one GPU's iteration on the data of its copies: targets before, suppression after them.
Seconds work_of_interpreter(const TrainingStep& step, double batch) {
  Seconds sum;
  for (const Kernel& kernel : step.kernels) {
    if (kernel.kind != KernelKind::transfer || kernel.layer < 0) continue;
    const HostWork work = host_work(kernel, batch, {});
    sum += (work.pre_launch + work.post_sync) * static_cast<double>(kernel.repeat);
  }
  return sum;
}

// Seconds of the step's updates that a GPU does not run because other GPUs hold these variables and update
// them (tensorflow/benchmarks at 8fb7908, variable_mgr.py, VariableMgrLocalFetchFromPS: gradients are applied
// once); `fullest`: as fullest_gpu().
double updates_elsewhere(const TrainingStep& step, const Timeline& timeline, const SyncPlan& plan,
                         double fullest) {
  const bool fetched =
      plan.method->reduction_site == ReductionSite::gpu_servers && plan.method->next_iteration;
  if (!fetched) return 0;
  Seconds sum;
  for (std::size_t k = 0; k < step.kernels.size(); ++k) {
    const KernelSpan& span = timeline.kernels[k];
    if (step.kernels[k].phase == Phase::update && !span.async_update) sum += span.end - span.start;
  }
  return sum.si() * (1 - fullest / static_cast<double>(plan.cluster.gpus));
}

// Load of the busiest over the mean where arrays lie whole on one: bytes of a GPU, or what a machine's
// network sends.
double fullest_share(const TrainingStep& step, double batch, const SyncPlan& plan) {
  const int machines = plan.cluster.machines;
  if (plan.method->reduction_site != ReductionSite::host_servers || !plan.method->in_order || machines == 1)
    return fullest_gpu(step.gradients, batch, plan.cluster.gpus, plan.method->in_order);
  return busiest_server(plan.method->in_turn ? fullest_in_turn(step.gradients, batch, machines)
                                             : fullest_gpu(step.gradients, batch, machines, true),
                        machines);
}

// Time for which a bucket occupies the communication thread.
Seconds sender_time(const SyncPlan& plan, Bytes bytes) {
  Seconds sum;
  for (const SyncStage& stage : plan.stages) {
    if (stage.sender_busy) sum += all_reduce_time(*stage.sender_busy, bytes);
  }
  return sum;
}

// Index of the first stage that begins only after all buckets have passed the stages before.
std::size_t first_later_stage(const SyncPlan& plan) {
  std::size_t end = plan.stages.size();
  while (end > 0 && (plan.stages[end - 1].next_forward || plan.stages[end - 1].after_all)) --end;
  return end;
}

}  // namespace

double expected_largest(std::int64_t draws) {
  if (draws < 2) return 0;
  const auto n = static_cast<double>(draws);
  return boost::math::quantile(boost::math::normal(), (n - 0.375) / (n + 0.25));
}

double fullest_server(const std::vector<ParameterGradient>& gradients, double batch, int servers) {
  std::vector<double> small(static_cast<std::size_t>(servers), 0.0);
  double cut = 0;
  double all = 0;
  std::int64_t key = 0;
  for (const ParameterGradient& gradient : gradients) {
    const double elements = gradient.elements.at(batch);
    all += elements;
    if (elements >= static_cast<double>(kWholeArray)) {
      cut += elements;
    } else {
      small[static_cast<std::size_t>(key * kKeyFactor % servers)] += elements;
    }
    ++key;
  }
  const auto n = static_cast<double>(servers);
  return all == 0 ? 1 : (cut / n + *std::max_element(small.begin(), small.end())) * n / all;
}

double fullest_gpu(const std::vector<ParameterGradient>& gradients, double batch, int gpus, bool in_order) {
  std::vector<double> sizes;
  for (auto gradient = gradients.rbegin(); gradient != gradients.rend();
       ++gradient)  // the last layer's come first
    sizes.insert(sizes.end(), static_cast<std::size_t>(gradient->repeat), gradient->elements.at(batch));
  if (!in_order) std::sort(sizes.begin(), sizes.end(), std::greater<>());
  std::vector<double> loads(static_cast<std::size_t>(gpus), 0.0);
  double all = 0;
  for (const double size : sizes) {
    *std::min_element(loads.begin(), loads.end()) += size;
    all += size;
  }
  return all == 0 ? 1 : *std::max_element(loads.begin(), loads.end()) * static_cast<double>(gpus) / all;
}

double fullest_in_turn(const std::vector<ParameterGradient>& gradients, double batch, int servers) {
  std::vector<double> loads(static_cast<std::size_t>(servers), 0.0);
  double all = 0;
  std::size_t next = 0;
  for (auto gradient = gradients.rbegin(); gradient != gradients.rend(); ++gradient) {
    for (std::int64_t i = 0; i < gradient->repeat; ++i) {
      loads[next++ % loads.size()] += gradient->elements.at(batch);
      all += gradient->elements.at(batch);
    }
  }
  return all == 0 ? 1 : *std::max_element(loads.begin(), loads.end()) * static_cast<double>(servers) / all;
}

double busiest_server(double fullest, int machines) {
  const auto n = static_cast<double>(machines);
  return (fullest * (1 - 2 / n) + 1) / (2 - 2 / n);
}

SyncTime simulate_sync(const TrainingStep& step, const Timeline& timeline, double batch,
                       const GradientWidth& width, const GpuSpec& gpu, const SyncPlan& plan,
                       Seconds own_copies) {
  SyncTime time;
  if (plan.ranks() == 1) return time;
  if (plan.cluster.gpus > 1) time.contention = timeline.gpu_busy * gpu.board_slowdown;
  if (plan.one_interpreter)
    time.host = work_of_interpreter(step, batch) * static_cast<double>(plan.cluster.gpus - 1);
  if (!plan.method->asynchronous)
    time.stragglers = timeline.iteration * (kRankSpread * expected_largest(plan.ranks()));
  if (plan.stages.empty()) return time;
  BucketQueue queue(step, timeline, batch, width.stored, plan);
  const double computed = queue.computed();
  const double fullest =
      plan.method->shards_by_key ? fullest_server(step.gradients, batch, plan.cluster.machines) : 1;
  const double server_share = fullest_share(step, batch, plan);
  Pipeline pipeline(step, timeline, plan, computed, server_share);
  const std::size_t waited_for = first_later_stage(plan);
  std::vector<GradientBucket> sent;
  double last = computed;
  double free = 0;
  while (auto bucket = queue.next(free)) {
    if (!plan.overlaps) bucket->ready = computed;
    bucket->bytes *= fullest * width.sent / width.stored;
    last = std::max(last, pipeline.send(*bucket, 0, waited_for));
    free = std::max(bucket->ready, free) + sender_time(plan, Bytes(bucket->bytes)).si();
    time.gradients += Bytes(bucket->bytes);
    sent.push_back(*bucket);
  }
  const TableExchange tables = table_exchange(step, timeline, batch, plan);
  time.stragglers += tables.imbalance;
  const Seconds waits = tables.exchange + synced_norm_time(step, plan);
  time.exposed = time.total = waits;
  if (sent.empty()) return time;
  const double on_gpu = pipeline.on_gpu();
  const double beside = pipeline.while_computing();
  // Servers in host memory do what the step copies by itself.
  const bool servers = plan.method->reduction_site == ReductionSite::host_servers;
  const double spared = servers ? own_copies.si() : 0;
  const double hidden = on_gpu > 0 ? std::min(1.0, (beside + std::min(spared, last - computed)) / on_gpu) : 0;
  for (std::size_t s = waited_for; s < plan.stages.size(); ++s) {
    if (plan.stages[s].next_forward) {
      last += forward_stall(step, timeline, batch, width.sent, plan.stages[s], server_share);
      continue;
    }
    for (const GradientBucket& bucket : sent) last = pipeline.send({last, bucket.bytes}, s, s + 1);
  }
  const double waited = last - computed - spared - updates_elsewhere(step, timeline, plan, server_share);
  time.exposed += Seconds(std::max(0.0, waited));
  time.total += Seconds(std::max(pipeline.busy(), last - computed));
  time.contention += Seconds(contention(plan, gpu, pipeline.mean_sms(), beside, hidden, time.gradients.si()));
  time.gradients += tables.vectors;
  time.messages = static_cast<int>(sent.size());
  return time;
}

}  // namespace tbdsim
