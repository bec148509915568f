// A profile made ready for one GPU and the library versions that a framework calls: for each family of
// kernels and each arithmetic the block of fitted parameters that fits best.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "costmodel/call.h"
#include "costmodel/families/family_names.h"
#include "costmodel/families/kernel_time.h"
#include "costmodel/residuals/residual_row.h"
#include "hwspecs/base/math_type.h"
#include "hwspecs/gpu_spec.h"

namespace tbdsim {

class GridWorkTable;  // families/fast/grid_work_table.h
class ResidualIndex;  // residuals/residual_index.h
struct Profile;       // profile/profile.h
struct ProfileBlock;  // profile/profile_block.h

// Major versions by library: {"cublas", 8}, {"cudnn", 6}.
using LibraryVersions = std::map<std::string, int>;

// One family in one arithmetic.
struct FamilyModel {
  const ProfileBlock* block = nullptr;  // null: the profile has none for the family; all else is then unset
  bool precision_matches = false;       // the block was measured in this arithmetic
  bool measured_on_this_gpu = false;
  double measured_watts = 0;  // board power (W) of that GPU when it was measured; 0: not known
  Hardware hardware;
  AchievedFraction<double> sustained{1, 1};        // of the data sheet's clock and bandwidth
  double clock_sd = 0;                             // standard deviation of ln(sustained clock)
  double sd_without_rows = 0;                      // sd_of() a call of a group without measured calls
  std::shared_ptr<const ResidualIndex> residuals;  // of the block
  std::shared_ptr<const GridWorkTable> grid_work;  // null: the family has no grids
  // The model by the next nearest block of the library and arithmetic, of convolutions; null: there is none.
  std::shared_ptr<const FamilyModel> next;
};

// The nearest model, of `nearest` and those next to it, whose block timed a call of the same pass and of
// groups or of none, as `call`; `nearest` if none did. NeuSight's calls with cuDNN 8 are forward passes of 3
// x 3 filters alone: what a block of them says of gradients and groups are priors, and a latency that no call
// of theirs determined.
[[nodiscard]] const FamilyModel& model_that_timed(const ConvCall& call, const FamilyModel& nearest);

// `profile`, `gpu` and `measured` must outlive it.
struct Calibration {
  const Profile* profile = nullptr;
  const GpuSpec* gpu = nullptr;
  const GpuSpec* measured =
      nullptr;  // the other board that the profile is of; null: it is of `gpu` or of several
  std::array<std::array<FamilyModel, kMathTypeCount>, kFamilyCount> models;  // [family][arithmetic]
  std::array<ConvLimits, kMathTypeCount>
      conv_limits;  // [arithmetic]: no padding where there are no tensor cores
};

// Chooses by precision first, then by library, then by version; a block measured on another GPU counts as one
// and a half versions farther. With the board that the profile is of, `measured`, another board has that
// one's share of the expected clock.
[[nodiscard]] Calibration calibration_of(const Profile& profile, const GpuSpec& gpu,
                                         const LibraryVersions& libraries = {},
                                         const ConvLimits& conv_limits = {},
                                         const GpuSpec* measured = nullptr);

// Predictive standard deviation of ln(measured / predicted) of a call whose residual is estimated as `found`:
//
//   sd = | found.sd * interval / 1.2816, clock_sd unless measured on this GPU, 0.3 if no call of the group was
//          measured, 0.2 if measured in another precision |   (root of the sum of squares)
//
// interval: how many of its deviations 80 % of the calls left out of the block's table lie within.
[[nodiscard]] double sd_of(const ResidualEstimate& found, const FamilyModel& model);

// True if measurements on `a` remain valid for `b`: the same GPU and architecture and the same arithmetic
// units; only clocks, bandwidths and counts differ.
[[nodiscard]] bool differ_in_rates_only(const GpuSpec& a, const GpuSpec& b);

// The same for a GPU that differs in its rates only. `gpu` must outlive it.
[[nodiscard]] Calibration with_rates(Calibration calibration, const GpuSpec& gpu);

}  // namespace tbdsim
