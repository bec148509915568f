// Convolutions of groups on tensor cores: which kernels there are, and the copies of images around them.
//
//   shared tile   several groups at a time in a tile of 64 channels, most of whose products are zeros: groups of
//                 4, 8, 16 and 32 channels (g16, g8, g4, g2 and g1 in the kernels' names)
//   one by one    a product for each group
//
// From Hopper on, with cuDNN 9, groups of up to 32 channels in other numbers are padded to the next of the
// four. Images are copied around the products where they are NCHW, where they are padded, and where groups of
// NHWC images are multiplied one by one, because the channels of one do not lie side by side.
#pragma once

#include <cmath>

#include "costmodel/families/convolution_geometry.h"

namespace tbdsim {

inline constexpr double kSharedTile = 64;  // channels

// Channels of a group in the narrowest shared tile that holds it; 0: no shared tile does.
[[nodiscard]] inline double width_in_shared_tile(const ConvCall& c) {
  const double channels = c.channels / c.groups;
  if (c.filters != c.channels || channels == 1) return 0;
  for (const double width : {4.0, 8.0, 16.0, 32.0}) {
    if (channels <= width) return width;
  }
  return 0;
}

// True for groups that share tiles as they are: 4, 8, 16 and 32 channels (calibrate/records/h100_sxm;
// sm80_xmma, kernels of any chip from Ampere on). All of them were timed with 32 groups. Before Hopper others
// do not: RegNets of 16 channels a group, 4 to 48 groups, train on an RTX 3090 at half the rate in NCHW and
// at a tenth in NHWC.
[[nodiscard]] inline bool shares_tiles(const ConvCall& c) {
  return width_in_shared_tile(c) == c.channels / c.groups && std::fmod(c.groups, 32) == 0;
}

// True for groups that are padded to share tiles: RegNetY-032's of 24 channels on an H100, 9, 24 and 63
// groups (the same records, steps).
[[nodiscard]] inline bool pads_groups(const ConvCall& c, const Hardware& hardware) {
  constexpr double kHopper = 90;
  return hardware.compute_capability >= kHopper && !shares_tiles(c) && width_in_shared_tile(c) > 0;
}

// The convolution that multiplies groups in shared tiles.
[[nodiscard]] inline ConvCall in_shared_tiles(ConvCall c) {
  c.groups = ceil_nonneg(c.groups * width_in_shared_tile(c) / kSharedTile);
  c.channels = c.filters = kSharedTile * c.groups;
  return c;
}

// Copies of images: bytes read and written, or instructions of threads where these take longer.
struct ConvCopies {
  double bytes = 0, instructions = 0;
};

// Copies around the products of groups. Those of NHWC images take 230 instructions for each padded element
// (tensorTransformGeneric, 0.55 elements a clock and SM: RegNetY-032 on an H100, nine calls, 136 to 152 G
// elements a second), or, a group at a time, 128 for each element that is read (nhwcSliceCKernel, 230 to 290
// G) and 230 for each that is written (145 to 160 G).
[[nodiscard]] inline ConvCopies copies_around_groups(const ConvSizes& c, const Choice& choice) {
  constexpr double kTransform = 230, kSlice = 128;
  const double inputs = c.images * c.channels * c.height * c.width;
  const double outputs = c.outputs * c.filters;
  const bool shared = choice.algorithm == Algorithm::group_tiles;
  const double padding = shared ? width_in_shared_tile(c) * c.groups / c.channels : 1;
  if (!c.channels_last) return {.bytes = c.element_bytes * (1 + padding) * (inputs + outputs)};
  if (shared) return {.instructions = padding > 1 ? kTransform * padding * (inputs + outputs) : 0};
  const double written = c.phase == Phase::backward_data      ? inputs
                         : c.phase == Phase::backward_weights ? 0
                                                              : outputs;
  return {.instructions = kSlice * (inputs + outputs - written) + kTransform * written};
}

}  // namespace tbdsim
