// Kernels that are bound by the bytes they move: element-wise, norms, softmax, pooling, updates, ...
//
//   time    = launch + sqrt(compute^2 + memory^2)
//   memory  = outside / (bandwidth * share) + cached / (64 bytes per boost clock and SM * l2_bandwidth)
//   compute = flops / (peak * clock * arithmetic) + serial * loads that one thread waits for, one after another
//             + blocks; blocks, and the least of memory and what it waits for afterwards: other_limits
//   bytes   = read + written, each as often as the kernel counts it
//   outside = (bytes + reread * (1 - rows)) * (1 - tensors): bytes that pass the memory bus; cached: the others
//   tensors = 1 / (1 + (bytes / (tensors_in_l2 * L2))^2): left in L2 by the kernel before
//   rows    = 1 / (1 + (in_flight / (rows_in_l2 * L2))^4): reread rows that are still in L2
//
// Times in seconds, sizes in bytes; names with underscores, launch, share, arithmetic and serial: fitted.
//
// Rows are read again by layer norms (once: sums first) and by softmax over more than 1,024 columns (twice
// forward: maximum, sum; once backward), as in PyTorch 2. In flight are the rows of all resident thread
// blocks: 128 threads a row for norms, columns / 4 (32 to 1,024) for softmax. That is why an L4 with 48 MB of
// L2 computes a softmax as fast as a copy and a T4 with 4 MB in 1.7 times that.
//
// Numbers read and written for each clock and SM have a limit, which binds half precision and the fastest
// memories (numbers_per_clock):
//
//   6.4   element-wise kernels, updates and gathered rows, which load four numbers at a time: what
//         PyTorch's norms in bf16 on an H200 reach (NVIDIA/cudnn-frontend@3929da2ef, benchmark/norms)
//   8.5   the same on Blackwell's data-centre GPUs: the same tables, 8.5 on a GB200, 8.7 on a GB300
//   0.31  softmax, elements as a share of these two: 2 a clock forward, 0.14 backward: 0.9. So many more pass where
//         rows are added in bf16 on an H100 (768 and 1,024 columns, this project's operators.csv); in fp32 its
//         bandwidth binds
//   -     norms of rows have a limit of their own: row_norm_time.h
//   3.9   copies to another layout from Hopper on: those of images around convolutions of half precision on an
//         H100, beside the same convolutions of NHWC images (this project's records, input and output together)
//   2.9   others, batch norms first of all: the mean error of 17 runs of CNNs of split fit with AMP on two GPUs is
//         5.5 % with it, 7.0 % with 3.2 and 6.1 % with 2.6
//
// A thread of a multi-tensor kernel waits for its loads of four numbers (graphs/multi_tensor.cpp): the
// updates of A3C's 0.68 million parameters on an H100, 32 loads, take 9 to 22 us, 15 in the median.
//
// A thread that processes numbers one after another waits for a memory access for each, even while the other
// threads of its warp run (MXNet's SequenceReverse: nvprof of Sockeye on a TITAN Xp, UofT-EcoSystem/sockeye,
// counts 119.65 ms for 2,560 numbers of each of 128 samples, and seven reads of DRAM for each byte of the
// tensor).
//
// Element-wise kernels, softmax and layer norms forward are fitted to measured tables. Other classes run at
// the element-wise share times a factor from a few rows of one table, which the parameter's meaning names;
// `modelled`: from no row, the factor is 1.
#pragma once

#include <algorithm>
#include <limits>
#include <optional>

#include "costmodel/call.h"
#include "costmodel/families/channel_norm_time.h"
#include "costmodel/families/kernel_time.h"
#include "costmodel/families/own_kernel_time.h"
#include "costmodel/families/row_norm_time.h"

namespace tbdsim {

struct StreamFamily {
  using Call = StreamCall;
  using Sizes = Call;
  static constexpr std::string_view name = "stream";
  enum : std::size_t {
    kBandwidth,
    kStackedBandwidth,
    kL2Bandwidth,
    kSoftmaxRows,
    kNormRows,
    kTensors,
    kArithmetic,
    kSerial,
    kSoftmaxBackward,
    kBatchNorm,
    kPooling,
    kReduction,
    kTranspose,
    kGather,
    kUpdate,
    kTransfer,
    kLaunch
  };
  static constexpr double kWide = 0.3;  // fitted to a few rows of one table, or to none
  static constexpr auto parameters = std::to_array<Parameter>({
      {"bandwidth", 0.77, 0.3, 1.0, "", "share of the memory bandwidth: GDDR, and HBM before Volta"},
      {"hbm_bandwidth", 0.9, 0.3, 1.0, "", "the same, HBM from Volta on"},
      {"l2_bandwidth", 0.6, 0.1, 2, "", "share of 64 byte per clock and SM"},
      {"softmax_rows_in_l2", 0.35, 0.05, 2, "", "half is found when rows in flight fill so much of L2"},
      {"norm_rows_in_l2", 0.57, 0.05, 2, "", "the same for layer norms"},
      {"tensors_in_l2", 0.2, 0.02, 2, "", "half is found when tensors are so much of L2"},
      {"arithmetic", 0.25, 0.02, 1, "", "share of the sustained peak; modelled"},
      {"serial", 3.651e-7, 1e-7, 2e-6, "s", "each such number; nvprof of Sockeye on a TITAN Xp", kWide},
      {"softmax_backward", 0.5, 0.2, 1.5, "", "bandwidth beside element-wise; NeuSight's models, A100, V100",
       kWide},
      {"batch_norm", 1, 0.3, 1.5, "", "bandwidth beside element-wise; modelled", kWide},
      {"pooling", 0.78, 0.2, 1.5, "", "bandwidth beside element-wise; TrioSim's max pooling, H100", kWide},
      {"reduction", 1, 0.2, 1.5, "", "bandwidth beside element-wise; modelled", kWide},
      {"transpose", 1, 0.2, 1.5, "", "bandwidth beside element-wise; modelled", kWide},
      {"gather", 1, 0.1, 1.5, "", "bandwidth beside element-wise; modelled", kWide},
      {"update", 0.88, 0.3, 1.5, "", "bandwidth beside element-wise; TrioSim's foreach Adam, H100", kWide},
      {"transfer", 1, 0.3, 1.1, "", "share of what the bus achieves; modelled", kWide},
      {"launch", 2.2e-6, 5e-7, 2e-5, "s",
       "a kernel that does nothing; held (P100: reframe-hpc kernel_latency)", 0},
  });

  template <class Visit>
  static void for_each_choice(const Call&, const Hardware&, Visit visit) {
    visit(Choice{.algorithm = Algorithm::stream});
  }
  template <class T>
  static TimeParts<T> time(const Call& call, const Choice& choice, const Hardware& hardware,
                           const AchievedFraction<T>& sustained, std::span<const T> p);
  static double workspace_bytes(const Call&, const Choice&) { return 0; }
  static double flops(const Call& call) { return call.flops; }
  static double executed(const Sizes& call, const Choice&) { return flops(call); }
  static double bytes(const Call& call) { return call.read_bytes + call.written_bytes; }
  static double operand_bytes(const Call& call) { return bytes(call); }
  static std::uint64_t group(const Call& call) {
    return static_cast<std::uint64_t>(call.kind) * 8 + static_cast<std::uint64_t>(call.phase);
  }
  static Features features(const Call& call);

 private:
  template <class T>
  static T through_memory(const Call& call, const Hardware& hardware, const AchievedFraction<T>& sustained,
                          std::span<const T> p);
};

// The parameter that multiplies the element-wise share for this class of kernels; none: the share itself.
[[nodiscard]] inline std::optional<std::size_t> class_parameter(const StreamCall& call) {
  switch (call.kind) {
    case KernelKind::softmax:
      return call.phase == Phase::backward_data ? std::optional<std::size_t>(StreamFamily::kSoftmaxBackward)
                                                : std::nullopt;
    case KernelKind::batch_norm:
      return StreamFamily::kBatchNorm;
    case KernelKind::pooling:
      return StreamFamily::kPooling;
    case KernelKind::reduction:
      return StreamFamily::kReduction;
    case KernelKind::transpose:
      return StreamFamily::kTranspose;
    case KernelKind::gather:
      return StreamFamily::kGather;
    case KernelKind::update:
      return StreamFamily::kUpdate;
    default:
      return std::nullopt;
  }
}

// Number of times that the bytes read are read again, because a kernel passes over each row more than once.
[[nodiscard]] inline double rereads(const StreamCall& call) {
  constexpr double kMostInRegisters = 1'024;  // columns of a softmax
  if (call.kind == KernelKind::softmax && call.columns > kMostInRegisters)
    return call.phase == Phase::forward ? 2 : 1;
  const bool norm = call.kind == KernelKind::layer_norm && call.phase != Phase::backward_weights;
  return norm && !call.holds_rows ? 1 : 0;
}

// Bytes of the rows that resident thread blocks process at once.
[[nodiscard]] inline double bytes_in_flight(const StreamCall& call, const Hardware& hardware) {
  constexpr double kMostThreads = 1'024;  // of a block
  const double softmax_threads = std::clamp(call.columns / 4, 32.0, kMostThreads);
  const double threads = call.kind == KernelKind::softmax ? softmax_threads : kNormThreads;
  const double fitting = std::floor(threads_per_sm(hardware.compute_capability) / threads);
  const double resident = std::clamp(fitting, 1.0, 32.0);  // blocks on an SM
  const double rows = std::min(call.rows, hardware.sm_count * resident);
  return rows * call.read_bytes / call.rows;
}

// Share of the element-wise bandwidth that a norm of rows reaches: its kernel sums gradients of weights over
// columns of two bytes, or holds rows in registers (cuDNN's on the GPUs of row_norm_time.h; of the fit
// quarter).
[[nodiscard]] inline double norm_share(const StreamCall& call) {
  constexpr double kColumnsOfHalf = 0.39, kHeldRows = 0.89, kWideBytes = 4;
  if (call.kind != KernelKind::layer_norm) return 1;
  if (call.phase == Phase::backward_weights) return call.element_bytes < kWideBytes ? kColumnsOfHalf : 1;
  return call.holds_rows ? kHeldRows : 1;
}

// Numbers that a kernel of this class reads and writes at most for each clock and SM.
[[nodiscard]] inline double numbers_per_clock(const StreamCall& call, double compute_capability) {
  constexpr double kRowsBefore = 6.4, kRowsOfBlackwell = 8.5, kTransposes = 3.9, kOthers = 2.9;
  constexpr double kSoftmax = 0.31, kSoftmaxBackward = 0.14;
  if (call.kind == KernelKind::layer_norm) return std::numeric_limits<double>::infinity();
  if (call.access != Access::vectors) {
    if (const double own = numbers_of_own_kernel(call); own > 0) return own;
  }
  constexpr double kHopper = 90;
  if (call.kind == KernelKind::transpose) return compute_capability < kHopper ? kOthers : kTransposes;
  const bool blackwell = compute_capability >= 100 && compute_capability < 120;
  const double rows_at_once = blackwell ? kRowsOfBlackwell : kRowsBefore;
  if (call.kind == KernelKind::softmax) {
    const double elements = rows_at_once * (call.phase == Phase::forward ? kSoftmax : kSoftmaxBackward);
    return elements * StreamFamily::bytes(call) /
           std::max(1.0, call.rows * call.columns * call.element_bytes);
  }
  const bool rows = call.kind == KernelKind::elementwise || call.kind == KernelKind::update ||
                    call.kind == KernelKind::gather;
  if (rows) return rows_at_once;
  const bool in_rounds =  // channel_rounds_time
      call.channels != 0 && call.access == Access::vectors && is_like_hopper(compute_capability);
  return in_rounds ? std::numeric_limits<double>::infinity() : kOthers;
}

// Limits of a kernel beside its bytes and operations.
struct OtherLimits {
  double blocks = 0;  // seconds that multiprocessors take for rows or pixels, whatever memory sends
  double least = 0;   // seconds of the bytes at least
  double waits = 0;   // loads that a thread waits for, one after another, when the bytes have passed
};

[[nodiscard]] inline bool has_other_limits(const StreamCall& call) {
  return call.access != Access::vectors || call.channels != 0 || call.kind == KernelKind::layer_norm;
}

// Not inlined: most kernels have none, and their path stays short.
[[nodiscard, gnu::noinline]] inline OtherLimits other_limits(const StreamCall& call,
                                                             const Hardware& hardware) {
  if (call.kind == KernelKind::layer_norm)
    return {.blocks = moments_time(call, hardware), .least = row_norm_time(call, hardware)};
  if (call.access == Access::vectors) {
    if (is_like_hopper(hardware.compute_capability)) return {.blocks = channel_rounds_time(call, hardware)};
    return {.least = channel_norm_time(call, hardware)};
  }
  return {.blocks = pixel_norm_time(call, hardware),
          .least = std::max(channel_norm_time(call, hardware), window_time(call, hardware)),
          .waits = parts_of_columns(call)};
}

template <class T>
T StreamFamily::through_memory(const Call& call, const Hardware& hardware,
                               const AchievedFraction<T>& sustained, std::span<const T> p) {
  constexpr double kVolta = 70;
  constexpr double kL2BytesPerClock = 64;
  // GDDR from Ampere on reaches 0.9 of its bandwidth where no check bits lie among the data. The records are
  // of cards with ECC; the factor is from measured steps on two without: an RTX 3090 and an RTX 4090
  // (docs/accuracy.md).
  constexpr double kAmpere = 80;
  constexpr double kWithoutEcc = 1.17;
  const bool kept_channels = is_like_hopper(hardware.compute_capability) && call.channels != 0;
  const double all = kept_channels ? bytes_of_channels(call) : bytes(call);
  const double again = rereads(call) * call.read_bytes;
  const T kept = p[kTensors] * (hardware.l2_bytes / std::max(all, 1.0));
  T outside(all);
  if (again > 0) {
    const T& room = call.kind == KernelKind::softmax ? p[kSoftmaxRows] : p[kNormRows];
    const T found = room * (hardware.l2_bytes / bytes_in_flight(call, hardware));
    outside = all + again / (1.0 + found * found * (found * found));
  }
  outside = outside / (1.0 + kept * kept);
  const T cached = (all + again) - outside;

  const bool stacked = hardware.hbm && hardware.compute_capability >= kVolta;
  const T& share = stacked ? p[kStackedBandwidth] : p[kBandwidth];
  T rate = hardware.bandwidth * sustained.bandwidth * share * norm_share(call);
  if (!hardware.hbm && !hardware.ecc && hardware.compute_capability >= kAmpere) rate = rate * kWithoutEcc;
  if (const auto factor = class_parameter(call)) rate = rate * p[*factor];
  const double numbers = numbers_per_clock(call, hardware.compute_capability);
  const double most = numbers * call.element_bytes * hardware.sm_count * hardware.clock;
  rate = std::min<T>(rate, T(most));
  const T cache_rate = kL2BytesPerClock * hardware.sm_count * hardware.clock * p[kL2Bandwidth];
  return outside / rate + cached / std::max<T>(cache_rate, rate);  // bytes from DRAM pass L2 too
}

template <class T>
TimeParts<T> StreamFamily::time(const Call& call, const Choice&, const Hardware& hardware,
                                const AchievedFraction<T>& sustained, std::span<const T> p) {
  if (call.kind == KernelKind::transfer) {
    const T memory = bytes(call) / (hardware.bus * p[kTransfer]);
    return {T(0), memory, p[kLaunch], p[kLaunch] + memory};
  }
  T compute = call.flops / (hardware.peak * sustained.clock * p[kArithmetic]) + call.serial * p[kSerial];
  T memory = through_memory(call, hardware, sustained, p);
  if (has_other_limits(call)) {
    const OtherLimits other = other_limits(call, hardware);
    compute = compute + other.blocks;
    memory = std::max<T>(memory, T(other.least)) + other.waits * p[kSerial];
  }
  return {compute, memory, p[kLaunch], p[kLaunch] + smooth_max(compute, memory)};
}

inline Features StreamFamily::features(const Call& call) {
  return {group(call),
          3,
          {std::log2(std::max(bytes(call), 1.0)), std::log2(std::max(call.columns, 1.0)),
           std::log2((call.read_bytes + 1) / (call.written_bytes + 1))}};
}

}  // namespace tbdsim
