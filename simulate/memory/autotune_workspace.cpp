#include "simulate/memory/autotune_workspace.h"

#include <algorithm>
#include <cmath>
#include <variant>

namespace tbdsim {
namespace {

constexpr double kTile = 32;  // side of a tile
constexpr double kTileBytes = 2 * 32 * 18 * 8;

// True for convolutions that FFTs do not compute.
bool has_gaps(const ConvShape& conv) {
  return conv.stride_height * conv.stride_width > 1 || conv.dilation_height * conv.dilation_width > 1 ||
         conv.groups > 1;
}

// Tiles along one side of an image.
double tiles_along(std::int64_t results, std::int64_t filter) {
  return std::ceil(static_cast<double>(results) / (kTile - static_cast<double>(filter - 1)));
}

}  // namespace

Bytes autotune_workspace(const Kernel& kernel, double batch, Bytes limit) {
  const auto* conv = std::get_if<ConvShape>(&kernel.shape);
  if (conv == nullptr || has_gaps(*conv)) return {};
  if (std::max(conv->kernel_height, conv->kernel_width) >= static_cast<std::int64_t>(kTile)) return {};
  const double tiles = tiles_along(conv->out_height, conv->kernel_height) *
                       tiles_along(conv->out_width, conv->kernel_width) * conv->images.at(batch);
  const auto channels = static_cast<double>(conv->channels);
  const auto filters = static_cast<double>(conv->filters);
  const Bytes needed(kTileBytes * (tiles * (channels + filters) + channels * filters));
  return needed <= limit ? needed : Bytes();
}

}  // namespace tbdsim
