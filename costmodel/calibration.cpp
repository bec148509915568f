#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <limits>

#include "costmodel/estimate.h"

namespace tbdsim {
namespace {

// "cudnn6" -> cudnn, 6.
std::pair<std::string, int> library_of(const std::string& generation) {
  const auto digit =
      std::find_if(generation.begin(), generation.end(), [](unsigned char c) { return std::isdigit(c); });
  return {std::string(generation.begin(), digit), std::atoi(std::string(digit, generation.end()).c_str())};
}

bool narrow(MathType math) { return math != MathType::fp32; }

// Both formats of two bytes: tensor cores that take both multiply them at one rate, with the same kernels.
bool alike(MathType a, MathType b) {
  const auto two_bytes = [](MathType math) { return math == MathType::fp16 || math == MathType::bf16; };
  return a == b || (two_bytes(a) && two_bytes(b));
}

// Later versions kept the kernels they had for cards before Volta (maxwell_scudnn_* and maxwell_sgemm_* in
// their names), while what was measured of those versions elsewhere ran others.
int newest_kernels(const GpuSpec& gpu, const std::string& library) {
  constexpr double kVolta = 7;
  const bool old = gpu.compute_capability < kVolta;
  if (!old) return std::numeric_limits<int>::max();
  return library == "cublas" ? 8 : 6;
}

// Whether a version's convolutions are far from those of the next: cuDNN 5.1 brought the non-fused Winograd
// (its release notes), which the calls measured with cuDNN 5 do not have (their share of it is a quarter of
// later ones'; Torch7's VGG-16 on TITAN X is 35 % quicker with 5.1 than with them).
bool before_nonfused_winograd(std::size_t family, const std::string& library, int version) {
  return family == index_of_family<ConvFamily>() && library == "cudnn" && version == 5;
}

// How ill a block serves a family's kernels of an arithmetic: another precision weighs more than another
// library, this more than other versions; another GPU as much as one and a half versions.
double distance_of(const ProfileBlock& block, std::size_t family, const GpuSpec& gpu, MathType math,
                   const LibraryVersions& libraries) {
  constexpr double kOtherUnits = 10'000, kOtherPrecision = 1'000, kOtherLibrary = 200;
  constexpr double kVersion = 10, kOtherGpu = 15;
  double distance = 0;
  if (!alike(block.math, math))
    distance += narrow(block.math) == narrow(math) ? kOtherPrecision : kOtherUnits;
  const auto [library, version] = library_of(block.generation);
  const auto wanted = libraries.find(library);
  if (wanted != libraries.end()) {
    const int most = block.own ? wanted->second : newest_kernels(gpu, library);
    distance += kVersion * std::abs(std::min(wanted->second, most) - version);
    if (wanted->second > version && before_nonfused_winograd(family, library, version)) distance += kVersion;
  }
  if (wanted == libraries.end() && !libraries.empty()) distance += kOtherLibrary;
  if (!block.own) distance += kOtherGpu;
  return distance;
}

// What the card sustains of its data sheet, as far as the block knows.
void set_sustained(Calibration::Entry& entry, const GpuSpec& gpu, MathType math) {
  const ProfileBlock& block = *entry.block;
  const Prior expected = expected_clock(gpu);
  entry.hardware = hardware_of(gpu, math);
  entry.sustained = {block.clock * (block.clock_of_expected ? expected.mean : 1), block.bandwidth};
  entry.clock_sd = block.clock_sd;
  // Of other cards' blocks the whole clock is that of such instructions, see below.
  if (block.own && math == MathType::tf32) entry.hardware.across_k = tf32_across_k(gpu);
  if (entry.own) return;
  if (block.own) {  // the profile is another card's: its clock says nothing of this one
    entry.sustained.clock = expected.mean;
    entry.clock_sd = expected.sd;
  }
  if (entry.hardware.tensor_cores) {
    entry.sustained.clock *= power_share(gpu) * (block.own ? 1 : instruction_share(gpu));
  }
}

template <class Family>
std::shared_ptr<const BlockTable> grids_of(const Calibration::Entry& entry) {
  if constexpr (HasGrids<Family>) {
    const std::span<const double> p = entry.block->parameters;
    return std::make_shared<const BlockTable>(Family::work(entry.hardware, p));
  }
  return nullptr;
}

void set_grids(Calibration::Entry& entry, std::size_t family) {
#define TBDSIM_GRIDS(Family) \
  if (family == index_of_family<Family>()) entry.grids = grids_of<Family>(entry);
  TBDSIM_FOR_EACH_FAMILY(TBDSIM_GRIDS)
#undef TBDSIM_GRIDS
}

void set_rates(Calibration::Entry& entry, std::size_t family, const GpuSpec& gpu, MathType math) {
  const Hardware before = entry.hardware;
  set_sustained(entry, gpu, math);
  const Hardware& now = entry.hardware;
  if (entry.grids == nullptr || now.sm_count != before.sm_count || now.rate_share != before.rate_share)
    set_grids(entry, family);
  constexpr double kNowhere = std::numeric_limits<double>::infinity();
  entry.sd_alone = sd_of({.mean = 0, .sd = entry.residuals->sd_alone(), .distance = kNowhere}, entry);
}

Calibration::Entry entry_for(const Profile& profile, std::size_t family, const GpuSpec& gpu, bool of_gpu,
                             MathType math, const LibraryVersions& libraries) {
  Calibration::Entry entry;
  double least = std::numeric_limits<double>::infinity();
  for (const ProfileBlock& block : profile.families[family]) {
    const double distance = distance_of(block, family, gpu, math, libraries);
    // Of equals the newest.
    const bool newer = entry.block != nullptr &&
                       library_of(block.generation).second > library_of(entry.block->generation).second;
    if (distance > least || (distance == least && !newer)) continue;
    least = distance;
    entry.block = &block;
  }
  if (entry.block == nullptr) return entry;
  entry.exact = alike(entry.block->math, math);
  entry.own = entry.block->own && of_gpu;
  return entry;
}

bool computes(const GpuSpec& gpu, MathType math) {
  return gpu.math[index_of(math)].has_value() || gpu.computes_in[index_of(math)].has_value();
}

// More deviation where no call of the sort was measured (batch norm, pooling, updates, a pass): estimate,
// published spot checks of such kernels are off by 2 to 44 %, a few by more.
constexpr double kNoSuchCall = 0.3;
constexpr double kOtherPrecision = 0.2;  // more deviation where the block is of another precision

}  // namespace

double sd_of(const ResidualEstimate& found, const Calibration::Entry& entry) {
  double sd = found.sd * entry.block->interval / kEightyPercent;
  if (!entry.own) sd = smooth_max(sd, entry.clock_sd);
  if (!entry.block->measured.empty() && !std::isfinite(found.distance)) sd = smooth_max(sd, kNoSuchCall);
  return entry.exact ? sd : smooth_max(sd, kOtherPrecision);
}

Calibration calibration_of(const Profile& profile, const GpuSpec& gpu, const LibraryVersions& libraries,
                           const ConvLimits& conv_limits) {
  Calibration calibration;
  calibration.profile = &profile;
  calibration.gpu = &gpu;
  calibration.conv_limits = conv_limits;
  const bool of_gpu = profile.gpu.empty() || profile.gpu == gpu.name;
  std::map<const ProfileBlock*, std::shared_ptr<const ResidualLookup>> lookups;
  for (std::size_t family = 0; family < kFamilyCount; ++family) {
    for (std::size_t m = 0; m < kMathTypeCount; ++m) {
      const auto math = static_cast<MathType>(m);
      if (!computes(gpu, math)) continue;
      Calibration::Entry& entry = calibration.entries[family][m];
      entry = entry_for(profile, family, gpu, of_gpu, math, libraries);
      if (entry.block == nullptr) continue;
      auto& lookup = lookups[entry.block];
      if (!lookup)
        lookup = std::make_shared<const ResidualLookup>(entry.block->residuals, entry.block->kriging);
      entry.residuals = lookup;
      set_rates(entry, family, gpu, math);
    }
  }
  return calibration;
}

bool differ_in_rates_only(const GpuSpec& a, const GpuSpec& b) {
  bool same = a.name == b.name && a.architecture == b.architecture &&
              a.compute_capability == b.compute_capability && a.computes_in == b.computes_in;
  for (std::size_t m = 0; m < kMathTypeCount; ++m) same &= a.math[m].has_value() == b.math[m].has_value();
  return same;
}

Calibration with_rates(Calibration calibration, const GpuSpec& gpu) {
  calibration.gpu = &gpu;
  for (std::size_t family = 0; family < kFamilyCount; ++family) {
    for (std::size_t m = 0; m < kMathTypeCount; ++m) {
      Calibration::Entry& entry = calibration.entries[family][m];
      if (entry.block != nullptr) set_rates(entry, family, gpu, static_cast<MathType>(m));
    }
  }
  return calibration;
}

}  // namespace tbdsim
