// Kernel x GPU x profile -> time, with its whole breakdown. Pure functions.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "costmodel/families/families.h"
#include "costmodel/hardware.h"
#include "costmodel/profile/profile.h"
#include "costmodel/residuals/fast/residual_lookup.h"
#include "graphs/training_step.h"
#include "hwspecs/base/quantity.h"
#include "hwspecs/gpu_spec.h"

namespace tbdsim {

enum class Bound : std::uint8_t { compute, memory, overhead };
inline constexpr std::array<std::string_view, 3> kBoundNames = {"compute", "memory", "overhead"};

// Where a number comes from, from surest to least sure.
//   measured      this call was timed on this GPU
//   interpolated  calls like it were timed on this GPU
//   transferred   it, or calls like it, were timed on other GPUs
//   modelled      by formulas fitted to measured calls, none of them like it
//   roofline      by round efficiencies
enum class Provenance : std::uint8_t { measured, interpolated, transferred, modelled, roofline };
inline constexpr std::array<std::string_view, 5> kProvenanceNames = {"measured", "interpolated",
                                                                     "transferred", "modelled", "roofline"};

[[nodiscard]] constexpr std::string_view name_of(Bound bound) {
  return kBoundNames[static_cast<std::size_t>(bound)];
}
[[nodiscard]] constexpr std::string_view name_of(Provenance provenance) {
  return kProvenanceNames[static_cast<std::size_t>(provenance)];
}

// The central 80 % of a normal distribution lie within this many standard deviations.
inline constexpr double kEightyPercent = 1.2816;

// Of one execution of a kernel. As long as a line of the processor's cache.
struct KernelCost {
  Seconds compute;      // if only arithmetic limited it
  Seconds memory;       // if only bandwidth limited it; of transfers, the bus
  Seconds overhead;     // launch and start-up
  Seconds total;        // at least each of them
  Bytes workspace;      // its scratch memory
  double residual = 0;  // ln(measured / formula) of calls nearby, which is in the times
  double sd = 0;        // of ln(measured / total)
  Bound bound = Bound::overhead;
  Provenance provenance = Provenance::roofline;
  Algorithm algorithm = Algorithm::none;  // what the library is expected to pick
  MathType math = MathType::fp32;         // what it computes in: the kernel's, or see estimate()

  // A copy that is not made takes no time; all else takes some.
  [[nodiscard]] bool runs() const { return total > Seconds(0); }
  // 80 % of measured times are expected within total / factor to total x factor.
  [[nodiscard]] double factor() const { return std::exp(kEightyPercent * sd); }
};

// Major versions by library: {"cublas", 8}, {"cudnn", 6}.
using LibraryVersions = std::map<std::string, int>;

// A profile made ready for one GPU and the libraries a framework calls: for each family and arithmetic the
// block that fits best (the same precision, then a library it calls, then the nearest version; one measured
// on another GPU counts as one and a half versions farther).
struct Calibration {
  struct Entry {
    const ProfileBlock* block = nullptr;  // none: the family has no block
    bool exact = false;                   // of this precision
    bool own = false;                     // measured on this GPU
    Hardware hardware;
    AchievedFraction<double> sustained{1, 1};
    double clock_sd = 0;
    double sd_alone = 0;                              // sd_of() a call of a sort that was not measured
    std::shared_ptr<const ResidualLookup> residuals;  // of the block
    std::shared_ptr<const BlockTable> grids;          // of families that have grids
  };
  const Profile* profile = nullptr;
  const GpuSpec* gpu = nullptr;
  std::array<std::array<Entry, kMathTypeCount>, kFamilyCount> entries;
  ConvLimits conv_limits;
};
[[nodiscard]] Calibration calibration_of(const Profile& profile, const GpuSpec& gpu,
                                         const LibraryVersions& libraries = {},
                                         const ConvLimits& conv_limits = {});

// Of ln(measured / predicted), where calls nearby tell so much.
[[nodiscard]] double sd_of(const ResidualEstimate& found, const Calibration::Entry& entry);

// Whether what was measured on the one card says as much of the other: they are of one architecture and
// calculate with the same types of numbers.
[[nodiscard]] bool differ_in_rates_only(const GpuSpec& a, const GpuSpec& b);

// The same card with other rates: what was measured on it says as much of it. `gpu` must outlive it.
[[nodiscard]] Calibration with_rates(Calibration calibration, const GpuSpec& gpu);

// Libraries that may compute a convolution in TF32 try their fp32 kernels too, which with Winograd's
// algorithm, or because they need no copies in NHWC, win on cards whose tensor cores do TF32 at the rate of
// their fp32 lanes (GA102, AD102). Of a step, such copies then take no time: they are not made. Throws
// UsageError when the GPU has no rate for the kernel's arithmetic.
[[nodiscard]] KernelCost estimate(const Kernel& kernel, double batch, const Calibration& calibration);

// Time of kernels of a kind over what the calibration says: what a framework's own kernels or the version of
// its libraries cost or save.
using KernelFactors = std::array<double, kKernelKindCount>;
[[nodiscard]] constexpr KernelFactors no_factors() {
  KernelFactors factors{};
  factors.fill(1);
  return factors;
}

// The cost of a kernel that is the same at every batch: of an update of parameters, say.
struct FixedCost {
  std::size_t kernel = 0;
  KernelCost cost;
};
// Of all such kernels of the step but those that are like an earlier one; in order.
[[nodiscard]] std::vector<FixedCost> fixed_costs(const TrainingStep& step, const Calibration& calibration,
                                                 const KernelFactors& factors = no_factors());

// One cost for each kernel of the step; of those in `fixed` it is known. It may be empty.
[[nodiscard]] std::vector<KernelCost> estimate(const TrainingStep& step, double batch,
                                               const Calibration& calibration,
                                               const KernelFactors& factors = no_factors(),
                                               std::span<const FixedCost> fixed = {});

// What a step's convolutions ask of a card with so many multiprocessors, whatever its rates.
struct ConvWorkCache {
  struct Option {
    Choice choice;
    ConvFamily::ConvWork<double> demand;
    double workspace = 0;  // bytes
  };
  int sm_count = 0;
  std::vector<std::vector<Option>> of_kernels;  // as TrainingStep::kernels; empty: not a convolution
};

// Under other rates: `costs` are those under the rates before. Calls nearby are the same, whatever the rates.
// `demands` is filled at first and serves the same step, batch and profile again.
[[nodiscard]] std::vector<KernelCost> estimate_again(const TrainingStep& step, double batch,
                                                     const Calibration& calibration,
                                                     std::vector<KernelCost> costs, ConvWorkCache& demands,
                                                     const KernelFactors& factors = no_factors());

// Standard deviation of ln(time) of kernels run one after another: a part of the variance is common to all of
// one kind, whose deviations add there; the rest and kinds are independent, theirs add as squares.
[[nodiscard]] double combined_sd(const TrainingStep& step, const std::vector<KernelCost>& costs);

}  // namespace tbdsim
