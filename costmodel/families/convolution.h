// Convolutions: the algorithms of a library, on the grids of thread_blocks.h. N images, C channels, K filters
// of R x S taps, input H x W, output P x Q; forward, gradient by the input ("data"), gradient by the weights.
//
//   algorithm          grid: results, depth                        bytes moved apart from the product
//   implicit_gemm      forward NPQ x K, CRS; data NHW x C, KRS;    partial sums, where the depth is split
//                      weights CRS x K, NPQ
//   col2im             data with a stride: CRS x NPQ, K            columns written, read and summed
//   winograd           F(2x2, 3x3), forward and data: a block is   filters read, transformed and written
//                      32 filters x 8 x 16 results of an image,
//                      16 products of 32 x 32 patches, C deep
//   winograd_nonfused  F(4x4, 3x3), 36 products (5x5: 64):         input, filters and output transformed:
//                      patches x K, C; weights C x K, patches      each form written and read
//   fft_tiling         complex products of 4 multiply-adds, one    the same of their spectra (32 x 17 complex
//                      for each frequency of a tile of 32 x 32:    numbers of 32 x 32 real ones)
//                      tiles x K, C; weights C x K, tiles
//
//   time    = launches + sqrt(compute^2 + tensors^2) + apart, the least over algorithms, tiles and splits
//   compute = work / (share x peak);  tensors = bytes of input, filters and output / (share x bandwidth);
//   apart   = the bytes above / (share x bandwidth)
//
// With a stride the implicit product of the data pass multiplies the zeros between the strides too, as cuDNN
// 5 to 7 did. On tensor cores no Winograd was ever chosen, and channels are padded to multiples of 8: up to
// cuDNN 7 in kernels of a third of the rate, later in those of any call ("NVIDIA Deep Learning Performance",
// Tensor Core requirements: from cuDNN 7.6.3 on they are used for any number of channels). FFT is for filters
// of 5 x 5 and more: of smaller ones it explained nothing more. Filters are mostly zeros in a tile: their
// spectra cost no more than their bytes, those of images 3 to 4 times as much. Its two shares are held:
// DeepBench's few calls do not tell them apart. Forward passes of 5 x 5 to 7 x 7 in TensorFlow sessions do,
// on GTX 1080 Ti, M60, P100 and V100 alike (CDECatapult/ml-performance-prediction@e649f32d354d, stride 1,
// from 4 ms on, with transposes, bias and activation): of 99 with channels x filters above 256, predicted
// over measured is 0.98 in the median, by GPU 0.83 to 1.07, the mean error 17 %. Narrower ones come out a
// fifth fast, and a K80 a third.
//
// Sources: sizes of tiles are those in the names of cuDNN's kernels and their grids (scudnn_128x64: 128
// pixels x 64 filters; winograd_128x128_tile148: 1 image, 4 x 8 patches) in NeuSight's table
// (sitar-lab/NeuSight@6945927); Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks", CVPR
// 2016; parameters are fitted to measurements, see the profiles.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "costmodel/call.h"
#include "costmodel/families/thread_blocks.h"
#include "costmodel/residuals/log2_of_size.h"

namespace tbdsim {

// A pass as products: each m x n results that are sums of `depth` products.
struct ConvProduct {
  double m = 1, n = 1, depth = 1, count = 1;
};

[[nodiscard]] inline ConvProduct conv_product(const ConvCall& c) {
  const double taps = c.kernel_height * c.kernel_width, outputs = c.images * c.out_height * c.out_width;
  if (c.phase == Phase::backward_data) {
    return {c.images * c.height * c.width, c.channels, c.filters * taps};
  }
  if (c.phase == Phase::backward_weights) return {c.channels * taps, c.filters, outputs};
  return {outputs, c.filters, c.channels * taps};
}

// What the data pass reads where the forward pass writes, and the other way round.
struct ConvRoles {
  double from, to;       // channels read and made
  double height, width;  // of the image made
};

[[nodiscard]] inline ConvRoles conv_roles(const ConvCall& c) {
  if (c.phase == Phase::backward_data) return {c.filters, c.channels, c.height, c.width};
  return {c.channels, c.filters, c.out_height, c.out_width};
}

// A call with what all its choices need.
struct ConvSizes : ConvCall {
  ConvProduct product = conv_product(*this);
  ConvRoles roles = conv_roles(*this);
  double taps = kernel_height * kernel_width;
  double weights = channels * filters;  // of each tap
  double outputs = images * out_height * out_width;
  double tensors =  // bytes of input, output and filters
      element_bytes * (images * channels * height * width + outputs * filters + weights * taps);
  // Patches of 4 x 4 results; elements of one, transformed: (4 + 3 - 1)^2, (4 + 5 - 1)^2.
  double patches = images * whole_up(roles.height / 4) * whole_up(roles.width / 4);
  double nonfused_products = kernel_height == 3 ? 36 : 64;
  double nonfused_elements = nonfused_products * (patches * (channels + filters) + weights);

  ConvSizes(const ConvCall& call) : ConvCall(call) {}  // NOLINT(google-explicit-constructor)
};

// Tiles of 32 x 32 of the padded input, each of which holds 33 - R x 33 - S results, and their spectra.
inline constexpr double kFftTile = 32;
inline constexpr double kFftBins = 32 * 17;

[[nodiscard]] inline double fft_tiles(const ConvCall& c) {
  return c.images * whole_up(c.out_height / (kFftTile + 1 - c.kernel_height)) *
         whole_up(c.out_width / (kFftTile + 1 - c.kernel_width));
}

// Of spectra: real numbers, two for a complex one.
[[nodiscard]] inline double fft_image_elements(const ConvSizes& c) {
  return 2 * kFftBins * fft_tiles(c) * (c.channels + c.filters);
}
[[nodiscard]] inline double fft_filter_elements(const ConvSizes& c) { return 2 * kFftBins * c.weights; }

// Tensor cores take channels in groups of 8: what is multiplied over what is asked for; 1: aligned.
[[nodiscard]] inline double conv_padding(const ConvCall& c) {
  return whole_up(c.channels / 8) * 8 * whole_up(c.filters / 8) * 8 / (c.channels * c.filters);
}

struct ConvFamily {
  using Call = ConvCall;
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
    kUnaligned
  };
  static constexpr auto parameters = std::to_array<Parameter>({
      {"forward", 0.95, 0.2, 1.3, "", "share of the sustained peak, implicit product, forward"},
      {"data", 0.9, 0.2, 1.3, "", "the same, gradient by the input"},
      {"weights", 0.7, 0.15, 1.3, "", "the same, gradient by the weights"},
      {"small_tile", 0.9, 0.5, 1.0, "", "of it kept when the tile's area is halved"},
      {"latency", 0.3, 0.001, 3, "", "thread blocks missing to hide latency, of a tile of 128 x 128"},
      {"prologue", 20, 0.1, 300, "", "start and end of a thread block, in steps of the depth"},
      {"bandwidth", 0.8, 0.1, 1.3, "", "share of the memory bandwidth"},
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
  });

  using Sizes = ConvSizes;
  // Calls visit(choice, its conv_grid) for each.
  template <class Visit>
  static void for_each_grid(const Sizes& call, const Hardware& hardware, Visit visit);
  template <class Visit>
  static void for_each_choice(const Sizes& call, const Hardware& hardware, Visit visit) {
    for_each_grid(call, hardware, [&](const Choice& choice, const BlockGrid&) { visit(choice); });
  }
  template <class T>
  static TimeParts<T> time(const Sizes& call, const Choice& choice, const Hardware& hardware,
                           const AchievedFraction<T>& sustained, std::span<const T> p);
  // Seconds of one of each, at the sustained rates.
  template <class T>
  struct UnitTimes {
    T operation, byte;

    UnitTimes(const Hardware& hardware, const AchievedFraction<T>& sustained)
        : operation(1.0 / (hardware.peak * sustained.clock)),
          byte(1.0 / (hardware.bandwidth * sustained.bandwidth)) {}
  };
  // What a choice asks of a card, whatever its rates: operations, bytes moved while multiplying, and before
  // or after, each over its share of the sustained rate; seconds beside.
  template <class T>
  struct ConvWork {
    T work, beside, apart, overhead;

    [[nodiscard]] TimeParts<T> at(const UnitTimes<T>& each) const {
      const T compute = work * each.operation;
      const T memory = beside * each.byte, alone = apart * each.byte;
      return {compute, memory + alone, overhead, overhead + smooth_max(compute, memory) + alone};
    }
  };
  template <class T>
  static BlockWork<T> work(const Hardware& hardware, std::span<const T> p) {
    return {hardware.sm_count, {p[kSmallTile], p[kLatency], p[kPrologue]}};
  }
  // `work`: of the choice's grid.
  template <class T>
  static ConvWork<T> demand(const Sizes& call, const Choice& choice, const T& work, const Hardware& hardware,
                            std::span<const T> p);
  // Calls visit(choice, demand) for each choice that can be the fastest at some rates. `work`: as above, or
  // its BlockTable.
  template <class Work, class Visit>
  static void for_each_demand(const Sizes& call, const Hardware& hardware, std::span<const double> p,
                              const Work& work, Visit visit);
  template <class Work, class Visit>
  static void for_each_time(const Sizes& call, const Hardware& hardware,
                            const AchievedFraction<double>& sustained, std::span<const double> p,
                            const Work& work, Visit visit) {
    const UnitTimes<double> each(hardware, sustained);
    double least = std::numeric_limits<double>::infinity();
    for_each_demand(call, hardware, p, work, [&](const Choice& choice, const ConvWork<double>& demand) {
      if (demand.overhead + demand.work * each.operation >= least) return;  // without its bytes
      const TimeParts<double> parts = demand.at(each);
      least = std::min(least, parts.total);
      visit(choice, parts);
    });
  }
  static double workspace_bytes(const Sizes& call, const Choice& choice);
  static double flops(const Call& c) {
    return 2 * c.images * c.filters * c.out_height * c.out_width * c.channels * c.kernel_height *
           c.kernel_width;
  }
  static double bytes(const Call& call) { return Sizes(call).tensors; }
  // Libraries choose by these: kernels are of one filter size and stride.
  static std::uint64_t group(const Call& c) {
    const auto whole = [](double x) { return static_cast<std::uint64_t>(x); };
    return whole(c.stride_height * c.stride_width) << 32U | whole(c.kernel_height) << 18U |
           whole(c.kernel_width) << 4U | static_cast<std::uint64_t>(c.phase);
  }
  static Features features(const Call& call);
};

inline constexpr Tile kImplicitTiles[] = {{128, 128}, {128, 64}, {128, 32}, {32, 32}};  // forward and data
inline constexpr Tile kWeightsTiles[] = {{128, 128}, {128, 64}, {64, 128}, {64, 64}, {128, 32},
                                         {32, 128},  {64, 32},  {32, 64},  {32, 32}};
inline constexpr Tile kProductTiles[] = {{128, 128}, {128, 64}, {64, 64}, {128, 32}, {32, 128}};  // of cuBLAS
inline constexpr std::uint16_t kDepthSplits[] = {2, 4, 8, 16, 32, 64, 128};  // each twice the one before
inline constexpr double kLeastSplitDepth = 256;
inline constexpr Choice kWinogradChoice{Algorithm::winograd, 8, 16, 1};

// A tile twice as long as the results has a half of it to spare: a smaller one does the same with less. Tiles
// of 32 are for few results, where larger ones would be half empty.
[[nodiscard]] inline bool wrong_size(double tile, double results) {
  return (tile > 32 && tile >= 2 * results) || (tile < 64 && results > 128);
}

// What an algorithm multiplies.
[[nodiscard]] inline ConvProduct conv_product(const ConvSizes& c, Algorithm algorithm) {
  const bool weights = c.phase == Phase::backward_weights;
  switch (algorithm) {
    case Algorithm::winograd_nonfused:
      return {weights ? c.channels : c.patches, c.roles.to, weights ? c.patches : c.roles.from,
              c.nonfused_products};
    case Algorithm::fft_tiling: {
      const double tiles = fft_tiles(c);
      return {weights ? c.channels : tiles, c.roles.to, 4 * (weights ? tiles : c.roles.from), kFftBins};
    }
    case Algorithm::col2im:
      return {c.channels * c.taps, c.outputs, c.filters};
    default:
      return c.product;
  }
}

[[nodiscard]] inline BlockGrid tiled(const ConvProduct& product, const Choice& choice) {
  const double tile_m = choice.tile_m, tile_n = choice.tile_n;
  return {product.count * whole_up(product.m / tile_m) * whole_up(product.n / tile_n) * choice.splits,
          tile_m * tile_n, product.depth / choice.splits};
}

// Thread blocks of a choice.
[[nodiscard]] inline BlockGrid conv_grid(const ConvSizes& c, const Choice& choice) {
  if (choice.algorithm != Algorithm::winograd) return tiled(conv_product(c, choice.algorithm), choice);
  return {whole_up(c.roles.to / 32) * c.images * whole_up(c.roles.height / choice.tile_m) *
              whole_up(c.roles.width / choice.tile_n),
          kWholeTile, c.roles.from};
}

// Splits of the depth that can win: not those that could be doubled while every block still has an SM of its
// own, nor those after the first that gives every SM all the blocks it can hold.
template <class Visit>
[[gnu::always_inline]] inline void for_each_depth_split(const ConvProduct& product, Choice choice,
                                                        double sm_count, Visit visit) {
  const BlockGrid whole = tiled(product, choice);
  const double most = sm_count * resident_blocks(whole.area);
  const auto deep_enough = [&](double splits) { return product.depth >= kLeastSplitDepth * splits; };
  BlockGrid grid = whole;
  for (const std::uint16_t splits : kDepthSplits) {
    grid.blocks *= 2;
    grid.depth *= 0.5;
    if (!deep_enough(splits) || grid.blocks >= 2 * most) break;
    if (2 * grid.blocks <= sm_count && deep_enough(2 * splits)) continue;
    choice.splits = splits;
    visit(choice, grid);
  }
}

template <class Visit>
void ConvFamily::for_each_grid(const Sizes& call, const Hardware& hardware, Visit visit) {
  const auto within_limit = [&](const Choice& choice) {
    return call.limits.workspace <= 0 || workspace_bytes(call, choice) <= call.limits.workspace;
  };
  const auto products = [&](Algorithm algorithm, const auto& tiles) __attribute__((always_inline)) {
    if (!within_limit({algorithm})) return;
    const ConvProduct product = conv_product(call, algorithm);
    for_each_tile(
        tiles, [&](const Tile& tile) __attribute__((always_inline)) {
          const Choice choice{algorithm, tile.first, tile.second, 1};
          visit(choice, tiled(product, choice));
        });
  };
  const bool weights = call.phase == Phase::backward_weights;
  const bool strided = call.stride_height * call.stride_width > 1;
  const auto split = [&](const Tile& tile) __attribute__((always_inline)) {
    const ConvProduct& product = call.product;
    if (wrong_size(tile.first, product.m) || wrong_size(tile.second, product.n)) return;
    const Choice whole{Algorithm::implicit_gemm, tile.first, tile.second, 1};
    visit(whole, tiled(product, whole));
    for_each_depth_split(product, whole, hardware.sm_count, [&](const Choice& choice, const BlockGrid& grid) {
      if (within_limit(choice)) visit(choice, grid);
    });
  };
  if (weights) {
    for_each_tile(kWeightsTiles, split);
  } else {
    products(Algorithm::implicit_gemm, kImplicitTiles);
  }
  if (call.phase == Phase::backward_data && strided) products(Algorithm::col2im, kProductTiles);
  if (strided || call.kernel_height != call.kernel_width || hardware.tensor_cores) return;
  if (call.kernel_height == 3 && !weights && within_limit(kWinogradChoice))
    visit(kWinogradChoice, conv_grid(call, kWinogradChoice));
  if (call.kernel_height >= 5 && call.kernel_height <= kFftTile / 2)
    products(Algorithm::fft_tiling, kProductTiles);
  if (!call.limits.nonfused_winograd) return;
  if (call.kernel_height == 3 || call.kernel_height == 5)
    products(Algorithm::winograd_nonfused, kProductTiles);
}

// What a choice moves, and which parameters rule it.
struct ConvTraffic {
  std::size_t efficiency, bandwidth, apart_bandwidth;  // places in ConvFamily::parameters
  double beside, apart;                                // bytes moved while multiplying; before or after
  double kernels = 1;
  double filters = 0;  // more bytes apart, at the bandwidth of those beside
};

[[nodiscard]] inline ConvTraffic conv_traffic(const ConvSizes& c, const Choice& choice) {
  using F = ConvFamily;
  switch (choice.algorithm) {
    case Algorithm::winograd:
      return {F::kWinograd, F::kBandwidth, F::kBandwidth, c.tensors, c.element_bytes * (9 + 16) * c.weights};
    case Algorithm::winograd_nonfused:
      return {c.kernel_height == 3 ? F::kNonfused : F::kNonfused5x5,
              F::kBandwidth,
              F::kTransform,
              0,
              c.tensors + 2 * c.element_bytes * c.nonfused_elements,
              3};
    case Algorithm::fft_tiling:
      return {F::kFft,
              F::kBandwidth,
              F::kFftBandwidth,
              0,
              c.tensors + 2 * c.element_bytes * fft_image_elements(c),
              3,
              2 * c.element_bytes * fft_filter_elements(c)};
    case Algorithm::col2im: {
      const double columns = c.element_bytes * c.outputs * c.channels * c.taps;
      const double gradient = c.element_bytes * c.images * c.channels * c.height * c.width;
      return {F::kCol2im, F::kBandwidth, F::kBandwidth, c.tensors - gradient + columns, columns + gradient,
              2};
    }
    default:
      if (c.phase == Phase::backward_data) return {F::kData, F::kBandwidth, F::kBandwidth, c.tensors, 0};
      if (c.phase == Phase::forward) return {F::kForward, F::kBandwidth, F::kBandwidth, c.tensors, 0};
      return {F::kWeights, F::kWeightsBandwidth, F::kBandwidth, c.tensors, 2 * F::workspace_bytes(c, choice)};
  }
}

template <class T>
ConvFamily::ConvWork<T> ConvFamily::demand(const Sizes& call, const Choice& choice, const T& work,
                                           const Hardware& hardware, std::span<const T> p) {
  const ConvTraffic traffic = conv_traffic(call, choice);
  T overhead = traffic.kernels * p[kLaunch];
  if (choice.splits > 1) overhead = overhead + p[kSplit];
  const double padding = hardware.tensor_cores ? conv_padding(call) : 1;
  T efficiency = p[traffic.efficiency];
  if (padding > 1)
    efficiency = (call.limits.pads_channels ? efficiency : efficiency * p[kUnaligned]) / padding;
  T apart = traffic.apart == 0 ? T(0) : T(traffic.apart / p[traffic.apart_bandwidth]);
  if (traffic.filters > 0) apart = apart + traffic.filters / p[traffic.bandwidth];
  return {work / efficiency, traffic.beside / p[traffic.bandwidth], apart, overhead};
}

template <class T>
TimeParts<T> ConvFamily::time(const Sizes& call, const Choice& choice, const Hardware& hardware,
                              const AchievedFraction<T>& sustained, std::span<const T> p) {
  return demand(call, choice, work(hardware, p).of(conv_grid(call, choice)), hardware, p)
      .at({hardware, sustained});
}

// Choices that differ in tiles alone differ in their work alone: the least of it is the fastest.
template <class Work, class Visit>
void ConvFamily::for_each_demand(const Sizes& call, const Hardware& hardware, std::span<const double> p,
                                 const Work& work, Visit visit) {
  constexpr auto place = [](Algorithm algorithm) { return static_cast<std::size_t>(algorithm); };
  constexpr std::size_t kMostSplits = 8;  // none, 2, 4, ... 128
  constexpr std::size_t kOthers = place(Algorithm::fft_tiling) - place(Algorithm::implicit_gemm);
  std::array<LeastWork, kMostSplits + kOthers> of_each;
  const auto keep_least = [&](const Choice& choice, const BlockGrid& grid) __attribute__((always_inline)) {
    const std::size_t kind =
        choice.algorithm == Algorithm::implicit_gemm
            ? static_cast<std::size_t>(std::countr_zero(choice.splits))
            : kMostSplits + place(choice.algorithm) - place(Algorithm::implicit_gemm) - 1;
    of_each[kind].keep_less(work.of(grid), choice);
  };
  for_each_grid(call, hardware, keep_least);
  for (const auto& [needed, choice] : of_each) {
    if (choice.algorithm != Algorithm::none) visit(choice, demand(call, choice, needed, hardware, p));
  }
}

inline double ConvFamily::workspace_bytes(const Sizes& c, const Choice& choice) {
  switch (choice.algorithm) {
    case Algorithm::winograd:
      return c.element_bytes * 16 * c.weights;
    case Algorithm::winograd_nonfused:
      return c.element_bytes * c.nonfused_elements;
    case Algorithm::fft_tiling:
      return c.element_bytes * (fft_image_elements(c) + fft_filter_elements(c));
    case Algorithm::col2im:
      return 0;  // BWD_DATA_ALGO_0 adds the columns into the gradient as it makes them
    default:
      return choice.splits > 1 ? 4 * c.product.m * c.product.n * choice.splits : 0;
  }
}

// Batches matter half as much as channels: a layer at another batch is the nearest call there is.
inline Features ConvFamily::features(const Call& c) {
  return {group(c),
          4,
          {0.5 * log2_of_size(c.images), log2_of_size(c.out_height * c.out_width), log2_of_size(c.channels),
           log2_of_size(c.filters)}};
}

}  // namespace tbdsim
