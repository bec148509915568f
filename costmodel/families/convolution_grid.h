// The algorithms, tiles and splits that a library can choose for a convolution, each as a grid of thread
// blocks.
#pragma once

#include "costmodel/families/convolution_groups.h"
#include "costmodel/families/direct_convolution.h"

namespace tbdsim {

inline constexpr Tile kImplicitTiles[] = {{128, 128}, {128, 64}, {128, 32}, {32, 32}};  // forward and data
inline constexpr Tile kWeightsTiles[] = {{128, 128}, {128, 64}, {64, 128}, {64, 64}, {128, 32},
                                         {32, 128},  {64, 32},  {32, 64},  {32, 32}};
inline constexpr Tile kProductTiles[] = {{128, 128}, {128, 64}, {64, 64}, {128, 32}, {32, 128}};  // of cuBLAS
// Groups that share no tile are multiplied one by one, with no narrower tile than this: RegNets of 8 to 64
// channels a group train in NCHW as if each group had 128, on an RTX 3090 and on an H100.
inline constexpr Tile kTilesOfOneGroup[] = {{128, 128}};
inline constexpr Tile kTilesOfGroups[] = {{128, 64}, {64, 64}};  // of those that share them
inline constexpr std::uint16_t kMostSplits = 1U << 15U;          // the largest power of 2 that a Choice holds
inline constexpr double kLeastSplitDepth = 256;                  // multiply-adds of each result of a part
inline constexpr Choice kWinogradChoice{Algorithm::winograd, 8, 16, 1};

// True for tiles that cannot be the fastest: at least twice as long as the results (half the tile does less
// work), or of 32 for more than 128 results.
[[nodiscard]] inline bool wrong_size(double tile, double results) {
  return (tile > 32 && tile >= 2 * results) || (tile < 64 && results > 128);
}

// The matrix products of an algorithm.
[[nodiscard]] inline ConvProduct conv_product(const ConvSizes& c, Algorithm algorithm) {
  const bool weights = c.phase == Phase::backward_weights;
  switch (algorithm) {
    case Algorithm::winograd_nonfused:
      return {.m = weights ? c.channels : c.patches,
              .n = c.roles.to,
              .depth = weights ? c.patches : c.roles.from,
              .count = c.nonfused_products};
    case Algorithm::fft_tiling: {
      const double tiles = fft_tiles(c);
      const double depth = weights ? tiles : c.roles.from;
      // A complex product has 4 multiply-adds.
      return {.m = weights ? c.channels : tiles, .n = c.roles.to, .depth = 4 * depth, .count = kFftBins};
    }
    case Algorithm::col2im:
      return {.m = c.channels * c.taps, .n = c.outputs, .depth = c.filters};
    case Algorithm::group_tiles:
      return conv_product(in_shared_tiles(c));
    default:
      return c.product;
  }
}

// True for algorithms that compute the convolution's product itself.
[[nodiscard]] inline bool is_implicit(Algorithm algorithm) {
  return algorithm == Algorithm::implicit_gemm || algorithm == Algorithm::group_tiles;
}

// The grid of a product. A part of a split depth takes as long as kLeastSplitDepth at least: a product that
// cannot be split further is never slower than a deeper one that can.
[[nodiscard]] inline BlockGrid tiled(const ConvProduct& product, const Choice& choice) {
  const double tile_m = choice.tile_m;
  const double tile_n = choice.tile_n;
  const double rows = ceil_nonneg(product.m / tile_m);
  const double columns = ceil_nonneg(product.n / tile_n);
  const double part = product.depth / choice.splits;
  return {.blocks = product.count * rows * columns * choice.splits,
          .area = tile_m * tile_n,
          .depth = choice.splits == 1 ? part : std::max(part, kLeastSplitDepth)};
}

inline constexpr Choice kDirectChoice{.algorithm = Algorithm::direct};

// True for calls that a direct kernel can compute.
[[nodiscard]] inline bool has_direct(const ConvCall& c) { return c.groups > 1 || c.framework_kernel; }

// True for chips for which cuDNN 8 has products of other groups of NHWC images on tensor cores: an estimate,
// chips with HBM. An RTX 3090 has none (RegNets trained in that layout by PyTorch 1.10 to 1.12 take 2 to 5
// times as long as in NCHW).
[[nodiscard, gnu::noinline]] inline bool has_nhwc_groups(const ConvCall& c, const Hardware& hardware) {
  constexpr double kVolta = 70;
  return hardware.tensor_cores && hardware.compute_capability >= kVolta &&
         (hardware.hbm || shares_tiles(c) || pads_groups(c, hardware));
}

// True for calls that nothing else computes.
[[nodiscard]] inline bool only_direct(const ConvCall& c, const Hardware& hardware) {
  return c.framework_kernel || (c.groups > 1 && c.channels_last && !has_nhwc_groups(c, hardware));
}

[[nodiscard]] inline BlockGrid conv_grid(const ConvSizes& c, const Choice& choice) {
  if (choice.algorithm != Algorithm::winograd) return tiled(conv_product(c, choice.algorithm), choice);
  const double rows = ceil_nonneg(c.roles.height / choice.tile_m);
  const double columns = ceil_nonneg(c.roles.width / choice.tile_n);
  const double filter_tiles = ceil_nonneg(c.roles.to / 32);
  return {.blocks = filter_tiles * c.images * rows * columns, .area = kMaxTileArea, .depth = c.roles.from};
}

// Calls visit(choice, grid) for splits of the depth into 2, 4, 8, ... parts, up to the first that gives every
// SM all the blocks it can hold, and while parts become shorter.
template <class Visit>
[[gnu::always_inline]] inline void for_each_depth_split(const ConvProduct& product, Choice choice,
                                                        double sm_count, Visit visit) {
  BlockGrid grid = tiled(product, choice);
  const double most_blocks = 2 * sm_count * resident_blocks(grid.area);
  while (grid.depth > kLeastSplitDepth && 2 * grid.blocks < most_blocks && choice.splits < kMostSplits) {
    grid.blocks *= 2;
    grid.depth = std::max(0.5 * grid.depth, kLeastSplitDepth);
    choice.splits *= 2;
    visit(choice, grid);
  }
}

// Multiplications and additions of an algorithm, without padding of tiles and zeros between strides.
// Winograd's F(2x2, 3x3) multiplies 4 * 4 numbers for 2 * 2 results of 9 taps.
[[nodiscard]] inline double conv_executed(const ConvSizes& c, const Choice& choice) {
  if (is_implicit(choice.algorithm) || choice.algorithm == Algorithm::direct)
    return 2 * c.outputs * c.weights * c.taps;
  const ConvProduct product = conv_product(c, choice.algorithm);
  const double executed = 2 * product.m * product.n * product.depth * product.count;
  return choice.algorithm == Algorithm::winograd ? executed * 16 / (4 * 9) : executed;
}

// The same as for_each_conv_grid() for groups on tensor cores.
template <class Visit>
[[gnu::noinline]] void for_each_grid_of_groups(const ConvSizes& call, const Hardware& hardware, Visit visit) {
  const auto over = [&](Algorithm algorithm, const auto& tiles) {
    const ConvProduct product = conv_product(call, algorithm);
    for (const Tile& tile : tiles) {
      const Choice whole{algorithm, tile.first, tile.second, 1};
      visit(whole, tiled(product, whole));
      if (call.phase != Phase::backward_weights) continue;
      for_each_depth_split(product, whole, hardware.sm_count,
                           [&](const Choice& choice, const BlockGrid& grid) {
                             const double limit = call.limits.workspace;
                             if (limit <= 0 || conv_workspace(call, choice) <= limit) visit(choice, grid);
                           });
    }
  };
  const bool shared = shares_tiles(call);
  if (shared || pads_groups(call, hardware)) over(Algorithm::group_tiles, kTilesOfGroups);
  if (!shared) over(Algorithm::implicit_gemm, kTilesOfOneGroup);
}

// Calls visit(choice, grid) for every choice whose workspace is within the call's limit, but for the direct
// one, which has no grid of tiles.
template <class Visit>
void for_each_conv_grid(const ConvSizes& call, const Hardware& hardware, Visit visit) {
  const auto within_limit = [&](const Choice& choice) {
    return call.limits.workspace <= 0 || conv_workspace(call, choice) <= call.limits.workspace;
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
  const auto split = [&](const Tile& tile) __attribute__((always_inline)) {
    const ConvProduct& product = call.product;
    if (wrong_size(tile.first, product.m) || wrong_size(tile.second, product.n)) return;
    const Choice whole{Algorithm::implicit_gemm, tile.first, tile.second, 1};
    visit(whole, tiled(product, whole));
    for_each_depth_split(
        product, whole,
        hardware.sm_count, [&](const Choice& choice, const BlockGrid& grid) __attribute__((always_inline)) {
          if (within_limit(choice)) visit(choice, grid);
        });
  };
  if (only_direct(call, hardware)) return;
  if (call.groups > 1 && hardware.tensor_cores) return for_each_grid_of_groups(call, hardware, visit);
  const bool weights = call.phase == Phase::backward_weights;
  const bool strided = call.stride_height * call.stride_width > 1;
  if (weights) {
    for_each_tile(kWeightsTiles, split);
  } else {
    products(Algorithm::implicit_gemm, kImplicitTiles);
  }
  const bool spreads = call.outputs < call.images * call.height * call.width;  // each of them to more pixels
  if (call.phase == Phase::backward_data && spreads && call.groups == 1)
    products(Algorithm::col2im, kProductTiles);
  const double filter = call.kernel_height;
  const bool square = filter == call.kernel_width;
  const bool dilated = call.dilation_height * call.dilation_width > 1;
  if (strided || dilated || call.groups > 1 || !square || hardware.tensor_cores) return;
  if (filter == 3 && !weights && within_limit(kWinogradChoice))
    visit(kWinogradChoice, conv_grid(call, kWinogradChoice));
  const bool fits_fft_tile = filter >= 5 && filter <= kFftTile / 2;
  if (fits_fft_tile) products(Algorithm::fft_tiling, kProductTiles);
  const bool has_nonfused = filter == 3 || filter == 5;
  if (has_nonfused && call.limits.nonfused_winograd) products(Algorithm::winograd_nonfused, kProductTiles);
}

}  // namespace tbdsim
