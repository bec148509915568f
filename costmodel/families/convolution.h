// Convolutions: the fastest of a library's algorithms, each as a grid of thread blocks (thread_blocks.h).
// Letters as in convolution_geometry.h.
//
//   algorithm          grid: results, depth                        bytes moved apart from the product
//   implicit_gemm      forward NPQ x K, CRS; data NHW x C, KRS;    partial sums, where the depth is split
//                      weights CRS x K, NPQ
//   group_tiles        the same of as many groups at a time as    the same
//                      have 64 channels, on tensor cores
//   col2im             data, where outputs are fewer than          columns written, read and summed
//                      inputs: CRS x NPQ, K
//   winograd           F(2x2, 3x3), forward and data: a block is   filters read, transformed and written
//                      32 filters x 8 x 16 results of an image,
//                      16 products of 32 x 32 patches, C deep
//   winograd_nonfused  F(4x4, 3x3), 36 products (5x5: 64):         input, filters and output transformed:
//                      patches x K, C; weights C x K, patches      each form written and read
//   direct             one thread a result, of groups only        direct_convolution.h
//   fft_tiling         complex products of 4 multiply-adds, one    the same of their spectra (32 x 17 complex
//                      for each frequency of a tile of 32 x 32:    numbers of 32 x 32 real ones)
//                      tiles x K, C; weights C x K, tiles
//
//   time       = launches + sqrt(compute^2 + overlapped^2) + serialized, the least over algorithms, tiles, splits
//   compute    = work / (share * peak), work in operations of thread_blocks.h; gradients by the weights, whose
//                operands do not run along the depth, divided by across_k (hardware.h, tf32_across_k): on an H100
//                they take 2.4 to 4.4 times as long in TF32 as in half precision, the other passes 1.8 to 2.1
//                (this project's records of 3 x 3 filters, less what copies of NCHW images take)
//   overlapped = bytes of input, filters and output / (share * bandwidth)
//   serialized = the bytes in the table's last column / (share * bandwidth)
//
// share: a fitted parameter of the algorithm; peak and bandwidth: sustained, in operations and bytes a
// second. The 2-norm is a smooth maximum.
//
// With a stride the implicit product of the data pass multiplies the zeros between the strides too, as cuDNN
// 5 to 7 did. On tensor cores no Winograd was ever chosen, and they take channels in groups of 8: up to cuDNN
// 7.6.2 other numbers were multiplied by kernels of a third of the rate; later the tensors are padded and
// multiplied by the kernels of any call ("NVIDIA Deep Learning Performance", Tensor Core requirements: from
// cuDNN 7.6.3 on they are used for any number of channels). FFT is for filters
// of 5 x 5 and more: for smaller ones it explained nothing more. Filters are mostly zeros in a tile: their
// spectra cost no more than their bytes, those of images 3 to 4 times as much. Its two shares are held:
// DeepBench has too few calls to fit them. Forward passes of 5 x 5 to 7 x 7 in TensorFlow sessions do, on GTX
// 1080 Ti, M60, P100 and V100 alike (CDECatapult/ml-performance-prediction@e649f32d354d, stride 1, from 4 ms
// on, with transposes, bias and activation): for 99 with channels * filters above 256, predicted over
// measured is 0.98 in the median, by GPU 0.83 to 1.07, the mean error 17 %. Narrower ones are predicted a
// fifth too fast, and on a K80 a third.
//
// Sources: sizes of tiles are those in the names of cuDNN's kernels and their grids (scudnn_128x64: 128
// pixels x 64 filters; winograd_128x128_tile148: 1 image, 4 x 8 patches) in NeuSight's table
// (sitar-lab/NeuSight@6945927); Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks", CVPR
// 2016; parameters are fitted to measurements, see the profiles.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <limits>

#include "costmodel/families/conv_work.h"
#include "costmodel/families/convolution_grid.h"
#include "costmodel/residuals/log2_of_size.h"

namespace tbdsim {

struct ConvFamily {
  using Call = ConvCall;
  using Sizes = ConvSizes;
  static constexpr std::string_view name = "convolution";
  enum : std::size_t {
    kForward,
    kData,
    kWeights,
    kSmallTile,
    kLatency,
    kPrologue,
    kBandwidth,
    kWeightsBandwidth,
    kLaunch,
    kSplit,
    kCol2im,
    kWinograd,
    kNonfused,
    kNonfused5x5,
    kFft,
    kFftBandwidth,
    kTransform,
    kUnaligned,
    kSmallProduct
  };
  static constexpr auto parameters = std::to_array<Parameter>({
      {"forward", 0.95, 0.2, kBoostOverSustained, "",
       "share of the sustained peak, implicit product, forward", 0.5, kBoostLimit},
      {"data", 0.9, 0.2, kBoostOverSustained, "", "the same, gradient by the input", 0.5, kBoostLimit},
      {"weights", 0.7, 0.15, kBoostOverSustained, "", "the same, gradient by the weights", 0.5, kBoostLimit},
      {"small_tile", 0.9, 0.5, 1.0, "", "of it kept when the tile's area is halved"},
      {"latency", 0.3, 0.001, 3, "", "thread blocks missing to hide latency, of a tile of 128 x 128"},
      {"prologue", 20, 0.1, 300, "", "start and end of a thread block, in steps of the depth"},
      {"bandwidth", 0.8, 0.1, 1.3, "", "share of the memory bandwidth", 0.5,
       "the L2 cache gives a part, but not most"},
      {"weights_bandwidth", 0.4, 0.05, 1.3, "",
       "the same, gradient by the weights: both operands are transposed"},
      {"launch", 1e-5, 5e-7, 5e-5, "s", "each kernel of a call"},
      {"split", 1e-5, 1e-7, 5e-5, "s", "clearing and adding the parts of a split"},
      {"col2im", 0.5, 0.05, 1.5, "", "share of the peak of the product before col2im"},
      {"winograd", 0.85, 0.1, 1.3, "", "share of the peak, F(2x2, 3x3), of the products that are left"},
      {"nonfused", 0.4, 0.2, 1.3, "", "the same, F(4x4, 3x3)", 1},
      {"nonfused_5x5", 0.8, 0.05, 1.3, "", "the same, of 5x5 filters"},
      {"fft", 1.3, 0.1, 2, "", "the same, complex products of spectra; held", 0},
      {"fft_bandwidth", 0.35, 0.1, 1.5, "", "share of the memory bandwidth of images' transforms; held", 0},
      {"transform", 0.6, 0.2, 3, "",
       "share of the memory bandwidth of Winograd's transforms; above 1: they stay in L2"},
      {"unaligned", 0.3, 0.02, 1, "",
       "share of tensor cores' rate where channels are padded to a multiple of 8, up to cuDNN 7"},
      {"small_product", 0.9, 0.5, 1.0, "",
       "small_tile of products by cuBLAS's kernels: col2im, non-fused Winograd, Fourier"},
  });

  template <class Visit>
  static void for_each_choice(const Sizes& call, const Hardware& hardware, Visit visit) {
    for_each_conv_grid(call, hardware, [&](const Choice& choice, const BlockGrid&) { visit(choice); });
    if (has_direct(call)) visit(kDirectChoice);
  }
  template <class T>
  static TimeParts<T> time(const Sizes& call, const Choice& choice, const Hardware& hardware,
                           const AchievedFraction<T>& sustained, std::span<const T> p);
  template <class T>
  static GridWork<T> grid_work(const Hardware& hardware, std::span<const T> p) {
    const T small = p[kSmallTile] / (p[kSmallTile] + hardware.tile_loss * (1.0 - p[kSmallTile]));
    return {hardware.sm_count, {small, p[kLatency], p[kPrologue], hardware.rate_share}, hardware.power};
  }
  // Time of a tile of cuBLAS's kernels over that of cuDNN's own of the same area.
  template <class T>
  static T product_tile(const BlockGrid& grid, std::span<const T> p) {
    const T of_half = p[kSmallTile] / p[kSmallProduct];
    T all(1.0);
    for (std::size_t halvings = log2_area_ratio(grid.area); halvings > 0; --halvings) all = all * of_half;
    return all;
  }
  // `operations`: those of the choice's grid.
  template <class T>
  static ConvWork<T> work(const Sizes& call, const Choice& choice, const T& operations,
                          const Hardware& hardware, std::span<const T> p);
  // Calls visit(choice, work) for each choice that can be the fastest at some rates. `grids`: grid_work() or
  // a table of it.
  template <class Grids, class Visit>
  static void for_each_work(const Sizes& call, const Hardware& hardware, std::span<const double> p,
                            const Grids& grids, Visit visit);
  template <class Grids, class Visit>
  static void for_each_time(const Sizes& call, const Hardware& hardware,
                            const AchievedFraction<double>& sustained, std::span<const double> p,
                            const Grids& grids, Visit visit) {
    const ConvUnitTimes<double> each(hardware, sustained);
    double least = std::numeric_limits<double>::infinity();
    for_each_work(call, hardware, p, grids, [&](const Choice& choice, const ConvWork<double>& work) {
      const double without_bytes = work.overhead + work.compute * each.operation;
      if (without_bytes >= least) return;
      const TimeParts<double> parts = work.time(each);
      least = std::min(least, parts.total);
      visit(choice, parts);
    });
  }
  static double workspace_bytes(const Sizes& call, const Choice& choice) {
    return conv_workspace(call, choice);
  }
  static double flops(const Call& c) {
    const double twice_outputs = 2 * c.images * c.filters * c.out_height * c.out_width;
    return twice_outputs * (c.channels / c.groups) * c.kernel_height * c.kernel_width;
  }
  static double executed(const Sizes& call, const Choice& choice) { return conv_executed(call, choice); }
  static double bytes(const Call& call) { return Sizes(call).tensors; }
  static double operand_bytes(const Call& call) { return bytes(call); }
  // 8 for groups, and 4 for NHWC images, 2 for one channel a group, 1 for a framework's own kernel.
  static std::uint64_t kind_of_groups(const Call& c) {
    return 8U + 4U * std::uint64_t{c.channels_last} + 2U * std::uint64_t{c.groups == c.channels} +
           std::uint64_t{c.framework_kernel};
  }
  // Libraries have kernels for one pass, filter size and stride, others for groups of channels, of one
  // channel and for dilation, and in half precision others for channels that are not padded; around those
  // that are padded they copy images. Frameworks have their own. Windows that lie wholly in the padding tell
  // nothing of others: gradients of DeepBench's 1 x 1 filters that are padded by 3, on tensor cores of a T4
  // and a V100, take 5 to 13 times what a formula says.
  static std::uint64_t group(const Call& c) {
    const bool padded_channels = pads_channels(c) && c.groups == 1 && conv_padding(c) > 1;
    const bool unaligned = c.element_bytes == 2 && !pads_channels(c) && conv_padding(c) > 1;
    const auto stride = static_cast<std::uint64_t>(c.stride_height * c.stride_width);
    const auto height = static_cast<std::uint64_t>(c.kernel_height);
    const auto width = static_cast<std::uint64_t>(c.kernel_width);
    const bool dilated = c.dilation_height * c.dilation_width > 1;
    const double reach = c.dilation_height * (c.kernel_height - 1) + 1;  // pixels from first to last
    const bool windows_of_padding = c.pad_height >= reach;
    const std::uint64_t of_groups = c.groups > 1 ? kind_of_groups(c) : 0;
    return std::uint64_t{dilated} << 63U | std::uint64_t{windows_of_padding} << 57U |
           std::uint64_t{padded_channels} << 58U | of_groups << 59U | stride << 32U | height << 18U |
           width << 4U | std::uint64_t{unaligned} << 3U | static_cast<std::uint64_t>(c.phase);
  }
  // Bits of group(): the pass, and whether there are groups of channels.
  static constexpr std::uint64_t kPassAndGroups = 7U | std::uint64_t{8} << 59U;
  // Batches count half as much as channels: a layer at another batch is the nearest call there is.
  static Features features(const Call& call) {
    const ConvCall c = padded(call);
    return {group(c),
            4,
            {0.5 * log2_of_size(c.images), log2_of_size(c.out_height * c.out_width), log2_of_size(c.channels),
             log2_of_size(c.filters)}};
  }
};

// The bytes that a choice moves, and the parameters that scale its rates (indices into
// ConvFamily::parameters).
struct ConvTraffic {
  std::size_t efficiency, bandwidth, serialized_bandwidth;
  double overlapped, serialized;  // bytes moved while multiplying; before or after
  double kernels = 1;
  double filters = 0;  // further serialized bytes, at the bandwidth of the overlapped ones
};

[[nodiscard]] inline ConvTraffic conv_traffic(const ConvSizes& c, const Choice& choice) {
  using F = ConvFamily;
  switch (choice.algorithm) {
    case Algorithm::winograd:  // filters of 9 elements read, transformed ones of 16 written
      return {.efficiency = F::kWinograd,
              .bandwidth = F::kBandwidth,
              .serialized_bandwidth = F::kBandwidth,
              .overlapped = c.tensors,
              .serialized = (c.element_bytes * 9 + transformed_bytes(c) * 16) * c.weights};
    case Algorithm::winograd_nonfused:
      return {.efficiency = c.kernel_height == 3 ? F::kNonfused : F::kNonfused5x5,
              .bandwidth = F::kBandwidth,
              .serialized_bandwidth = F::kTransform,
              .overlapped = 0,
              .serialized = c.tensors + 2 * transformed_bytes(c) * c.nonfused_elements,
              .kernels = 3};
    case Algorithm::fft_tiling:
      return {.efficiency = F::kFft,
              .bandwidth = F::kBandwidth,
              .serialized_bandwidth = F::kFftBandwidth,
              .overlapped = 0,
              .serialized = c.tensors + 2 * transformed_bytes(c) * fft_image_elements(c),
              .kernels = 3,
              .filters = 2 * transformed_bytes(c) * fft_filter_elements(c)};
    case Algorithm::col2im: {
      const double columns = c.element_bytes * c.outputs * c.channels * c.taps;
      const double gradient = c.element_bytes * c.images * c.channels * c.height * c.width;
      return {.efficiency = F::kCol2im,
              .bandwidth = F::kBandwidth,
              .serialized_bandwidth = F::kBandwidth,
              .overlapped = c.tensors - gradient + columns,
              .serialized = columns + gradient,
              .kernels = 2};
    }
    default: {
      const bool weights = c.phase == Phase::backward_weights;
      const std::size_t of_data = c.phase == Phase::forward ? F::kForward : F::kData;
      return {.efficiency = weights ? F::kWeights : of_data,
              .bandwidth = weights ? F::kWeightsBandwidth : F::kBandwidth,
              .serialized_bandwidth = F::kBandwidth,
              .overlapped = c.tensors,
              .serialized = weights ? 2 * conv_workspace(c, choice) : 0};
    }
  }
}

// True for products of the data pass that leave out the zeros between the strides: cuDNN's tensor-core
// kernels from Ampere on (strided_dgrad in their names).
[[nodiscard]] inline bool skips_zeros(const ConvSizes& c, const Choice& choice, const Hardware& hardware) {
  constexpr double kAmpere = 80;
  return c.phase == Phase::backward_data && hardware.compute_capability >= kAmpere &&
         is_implicit(choice.algorithm);
}

inline constexpr double kKernelsOfPadding = 3;  // both images and the filters

// Copies of images around a product on tensor cores that are part of its call. Those of NCHW images around
// dense convolutions are kernels of their own (graphs/layers/conv2d.cpp).
[[nodiscard]] inline ConvCopies copies_around(const ConvSizes& c, const Choice& choice) {
  return c.groups > 1 ? copies_around_groups(c, choice) : ConvCopies{.bytes = c.padding_bytes};
}

// Terms of a product on tensor cores that products on other lanes lack: a factor on its rate, bytes that are
// not read, bytes that copies move, seconds of kernels around it. Not inlined: a prediction in fp32 has none
// and is not slowed.
template <class T>
struct TensorCoreTerms {
  T efficiency;
  double passed_over_bytes, copied_bytes;
  T overhead;
};

// True for channels that are multiplied by kernels for any alignment, at the rate `unaligned`. The copies to
// NHWC before weight gradients of TF32 pad channels, as in the steps of ResNet-50 and Inception v3 on an H100
// (calibrate/records/h100_sxm): images of three channels are multiplied as those of four.
[[nodiscard]] inline bool is_unaligned(const ConvSizes& c) {
  constexpr double kTf32 = 4;  // bytes
  const bool copied = c.phase == Phase::backward_weights && c.element_bytes == kTf32;
  return c.groups == 1 && !copied;
}

template <class T>
[[nodiscard, gnu::noinline]] TensorCoreTerms<T> tensor_core_terms(const ConvSizes& call, const Choice& choice,
                                                                  const Hardware& hardware,
                                                                  std::span<const T> p) {
  T efficiency(call.phase == Phase::backward_weights ? hardware.across_k : 1);
  const double padding = choice.algorithm == Algorithm::group_tiles ? 1 : conv_padding(call);
  if (padding > 1)
    efficiency = efficiency * (is_unaligned(call) ? p[ConvFamily::kUnaligned] : T(1)) / padding;
  if (skips_zeros(call, choice, hardware)) efficiency = efficiency * (call.stride_height * call.stride_width);
  const ConvCopies copies = copies_around(call, choice);
  T overhead(copies.instructions * ConvUnitTimes<double>(hardware, {1, 1}).instruction);
  if (call.padding_bytes > 0) overhead = overhead + kKernelsOfPadding * p[ConvFamily::kLaunch];
  return {efficiency, bytes_passed_over(call), copies.bytes, overhead};
}

template <class T>
[[nodiscard, gnu::noinline]] ConvWork<T> direct_work(const ConvSizes& call, const Hardware& hardware,
                                                     std::span<const T> p) {
  return {.compute = T(0),
          .overlapped_bytes = T(call.tensors / kDirectBandwidth),
          .serialized_bytes = T(0),
          .overhead = p[ConvFamily::kLaunch],
          .instructions = direct_instructions(call, hardware)};
}

// The share of the peak on a GPU that multiplies at `rate_share` of its generation's full rate, of which
// full-rate GPUs reach `share`: what is not multiplication takes as many clocks (thread_blocks.h).
template <class T>
[[nodiscard]] T share_of_rate(const T& share, const Hardware& hardware) {
  if (hardware.rate_share == 1 || share >= 1.0) return share;
  return share / (share + hardware.rate_share * (1.0 - share));
}

template <class T>
ConvWork<T> ConvFamily::work(const Sizes& call, const Choice& choice, const T& operations,
                             const Hardware& hardware, std::span<const T> p) {
  const ConvTraffic traffic = conv_traffic(call, choice);
  T overhead = traffic.kernels * p[kLaunch];
  if (choice.splits > 1) overhead = overhead + p[kSplit];
  T efficiency = p[traffic.efficiency];
  double overlapped_bytes = traffic.overlapped, serialized_bytes = traffic.serialized;
  if (hardware.tensor_cores) {
    const TensorCoreTerms<T> terms = tensor_core_terms(call, choice, hardware, p);
    efficiency = share_of_rate(efficiency, hardware) * terms.efficiency;
    overlapped_bytes -= terms.passed_over_bytes;
    serialized_bytes += terms.copied_bytes;
    overhead = overhead + terms.overhead;
  }
  T serialized(0);
  if (serialized_bytes != 0) serialized = serialized_bytes / p[traffic.serialized_bandwidth];
  if (traffic.filters > 0) serialized = serialized + traffic.filters / p[traffic.bandwidth];
  const T overlapped = overlapped_bytes / p[traffic.bandwidth];
  return {operations / efficiency, overlapped, serialized, overhead};
}

template <class T>
TimeParts<T> ConvFamily::time(const Sizes& call, const Choice& choice, const Hardware& hardware,
                              const AchievedFraction<T>& sustained, std::span<const T> p) {
  if (choice.algorithm == Algorithm::direct)
    return direct_work(call, hardware, p).time({hardware, sustained});
  const BlockGrid grid = conv_grid(call, choice);
  T operations = grid_work(hardware, p).operations(grid);
  if (!is_implicit(choice.algorithm)) operations = operations * product_tile(grid, p);
  return work(call, choice, operations, hardware, p).time({hardware, sustained});
}

// Choices that differ in their tiles alone differ in their operations alone: the least of these is the
// fastest.
template <class Grids, class Visit>
void ConvFamily::for_each_work(const Sizes& call, const Hardware& hardware, std::span<const double> p,
                               const Grids& grids, Visit visit) {
  constexpr auto place = [](Algorithm algorithm) { return static_cast<std::size_t>(algorithm); };
  constexpr std::size_t kNumbersOfSplits = std::countr_zero(kMostSplits) + 1;  // none, 2, 4, ...
  constexpr std::size_t kOthers =
      place(Algorithm::fft_tiling) - place(Algorithm::group_tiles);  // with a place each
  std::array<LeastWork, kNumbersOfSplits + kOthers> of_each;
  const auto keep_least = [&](const Choice& choice, const BlockGrid& grid) __attribute__((always_inline)) {
    if (is_implicit(choice.algorithm))
      return of_each[static_cast<std::size_t>(std::countr_zero(choice.splits))].keep_less(
          grids.operations(grid), choice);
    const std::size_t other = place(choice.algorithm) - place(Algorithm::group_tiles) - 1;
    of_each[kNumbersOfSplits + other].keep_less(grids.operations(grid) * product_tile(grid, p), choice);
  };
  for_each_conv_grid(call, hardware, keep_least);
  double least_of_fewer_splits = std::numeric_limits<double>::infinity();
  for (const auto& [operations, choice] : of_each) {
    if (choice.algorithm == Algorithm::none) continue;
    if (is_implicit(choice.algorithm)) {  // more splits cost more bytes and start-up
      if (operations >= least_of_fewer_splits) continue;
      least_of_fewer_splits = operations;
    }
    visit(choice, work(call, choice, operations, hardware, p));
  }
  if (has_direct(call)) visit(kDirectChoice, direct_work(call, hardware, p));
}

}  // namespace tbdsim
