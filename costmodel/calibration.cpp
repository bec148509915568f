#include "costmodel/calibration.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>
#include <vector>

#include "costmodel/families/families.h"
#include "costmodel/families/fast/grid_work_table.h"
#include "costmodel/hardware.h"
#include "costmodel/kernel_cost.h"
#include "costmodel/profile/generation.h"
#include "costmodel/profile/profile.h"
#include "costmodel/residuals/residual_index.h"

namespace tbdsim {
namespace {

bool computes(const GpuSpec& gpu, MathType math) {
  return gpu.math[index_of(math)].has_value() || gpu.computes_in[index_of(math)].has_value();
}

// True for equal types and for fp16 and bf16, which tensor cores multiply at one rate with the same kernels.
bool alike(MathType a, MathType b) {
  const auto two_bytes = [](MathType math) { return math == MathType::fp16 || math == MathType::bf16; };
  return a == b || (two_bytes(a) && two_bytes(b));
}

// Versions of the library between the kernels of `block` and those that `wanted` (0: the newest) runs on the
// GPU. On GPUs before Volta versions later than cuBLAS 8 and cuDNN 6 run the same kernels
// (maxwell_scudnn_*, maxwell_sgemm_*): blocks of such GPUs differ by a tenth of a version then. On the GPUs
// where other blocks were measured they run other kernels.
double versions_between(const ProfileBlock& block, const GpuSpec& gpu, int wanted) {
  constexpr double kVolta = 7, kSameKernels = 0.1;
  const auto [library, version] = generation_of(block.generation);
  const double apart = wanted == 0 ? 0 : std::abs(wanted - version);
  const bool has_old_kernels = library == "cublas" || library == "cudnn";
  if (gpu.compute_capability >= kVolta || !has_old_kernels) return apart;
  const int newest = library == "cublas" ? 8 : 6;
  const bool old_block = block.own || (block.capability > 0 && block.capability < kVolta);
  const int of_block = old_block ? std::min(version, newest) : version;
  const int of_gpu = wanted == 0 ? newest : std::min(wanted, newest);
  return std::abs(of_gpu - of_block) + kSameKernels * apart;
}

// True for convolutions of cuDNN 5: 5.1 brought the non-fused Winograd (its release notes), which the calls
// measured with 5 lack (their share of it is a quarter of later ones'; Torch7's VGG-16 on TITAN X is 35 %
// faster with 5.1).
bool before_nonfused_winograd(std::size_t family, const std::string& library, int version) {
  return family == index_of_family<ConvFamily>() && library == "cudnn" && version == 5;
}

// How far a block of attention kernels is from those of the family: kernels of another library stand in
// (Triton's for FlashAttention 2, TensorRT-LLM's for cuDNN), and those that only GPUs from Hopper on have,
// whose products run by groups of warps, are other kernels than those of GPUs before.
double distance_of_attention(const ProfileBlock& block, std::size_t family, const GpuSpec& gpu,
                             const std::string& library) {
  constexpr double kOtherLibrary = 200, kOtherKernels = 300, kHopper = 9;
  double distance = 0;
  for_each_family([&]<class Family>(FamilyTag<Family>) {
    if (family != index_of_family<Family>()) return false;
    if constexpr (std::is_same_v<typename Family::Call, AttentionCall>) {
      if (!Family::name.starts_with(library)) distance += kOtherLibrary;
      if (!block.own && gpu.compute_capability < kHopper && block.capability >= kHopper)
        distance += kOtherKernels;
    }
    return true;
  });
  return distance;
}

// True for recurrent layers whose products cuBLAS multiplies with other instructions than the block's: an
// H100 with cuDNN 9.19 and cuBLAS 13.1 runs them by groups of warps (nvjet_sm90_*,
// sm90_xmma_gemm_*_warpgroupsize* in calibrate/records/h100_sxm). GNMT with cuBLAS 11.8 and 12.4 takes as
// long on it as kernels warp by warp, measured on a V100, come to (instruction_share), 1.2 times as long as
// by these.
bool has_newer_products(const ProfileBlock& block, std::size_t family, const LibraryVersions& libraries) {
  constexpr double kHopper = 9;
  constexpr int kTimed = 13;
  const auto wanted = libraries.find("cublas");
  return family == index_of_family<RecurrentFamily>() && block.math != MathType::fp32 &&
         block.capability >= kHopper && wanted != libraries.end() && wanted->second < kTimed;
}

// Distance of a block from the wanted arithmetic, library version and GPU; the nearest block is used. Another
// precision weighs more than another library, which weighs more than other versions; another GPU weighs as
// much as one and a half versions; other units or instructions weigh more than all of these. The weights only
// order these cases and are not fitted.
double distance_of(const ProfileBlock& block, std::size_t family, const GpuSpec& gpu, MathType math,
                   const LibraryVersions& libraries) {
  constexpr double kOtherUnits = 10'000, kOtherInstructions = 2'000, kOtherPrecision = 1'000,
                   kOtherLibrary = 200;
  constexpr double kVersion = 10, kOtherGpu = 15;
  double distance = 0;
  // Blocks of other types than fp32 are of tensor cores. A GPU without them computes all types by its lanes,
  // by the kernels of fp32 with other loads (maxwell_fp16_sgemm_fp16_128x128_nn).
  const bool same_units = (block.math != MathType::fp32) == has_tensor_cores(gpu, math);
  if (!same_units) distance += kOtherUnits;
  if (!alike(block.math, math)) distance += kOtherPrecision;
  if (math == MathType::fp4 && block.math != MathType::fp8)
    distance += kOtherPrecision;  // fp8 is the nearest
  const auto [library, version] = generation_of(block.generation);
  const auto wanted = libraries.find(library);
  const int wanted_version = wanted == libraries.end() ? 0 : wanted->second;
  distance += kVersion * versions_between(block, gpu, wanted_version);
  if (wanted_version > version && before_nonfused_winograd(family, library, version)) distance += kVersion;
  if (wanted == libraries.end() && !libraries.empty()) distance += kOtherLibrary;
  if (has_newer_products(block, family, libraries)) distance += kOtherInstructions;
  if (!block.own) distance += kOtherGpu;
  return distance + distance_of_attention(block, family, gpu, library);
}

// The clock of a measured board under another limit of power than it was measured with: full load runs at the
// cube root of their ratio, no faster than the boost clock and no slower than what few busy SMs are left.
void set_power(FamilyModel& model, const GpuSpec& gpu, MathType math) {
  const double ratio = power_ratio(gpu, model.measured_watts);
  const double boost = gpu.boost_clock.si() / rate_of(gpu, math).clock.si();
  const double measured = model.sustained.clock;
  model.sustained.clock = std::min(measured * ratio, std::max(measured, boost));
  if (ratio < 1) model.hardware.power = {ratio, kCubeRoot};
}

// True for families whose formula says which instructions multiply: attention (attention.h).
bool knows_instructions(std::size_t family) {
  return for_each_family([&]<class Family>(FamilyTag<Family>) {
    return family == index_of_family<Family>() && std::is_same_v<typename Family::Call, AttentionCall>;
  });
}

// The clock (share of the data sheet's) of a board in the kernels that `block` was fitted to on another
// board: the share of its expected clock that the measured one reached; without that board's data, the
// expected one.
Prior clock_by_other_board(const ProfileBlock& block, const GpuSpec* measured, const GpuSpec& gpu,
                           MathType math) {
  const Prior expected = expected_clock(gpu, math);
  if (measured == nullptr || !computes(*measured, math)) return expected;
  return {expected.mean * block.clock / expected_clock(*measured, math).mean, kClockBetweenBoards};
}

// Share of the tensor-core peak in a block of kernels that may be older than the GPU. Products of recurrent
// layers warp by warp have no more operations a clock on 10.x than on Hopper, half of 8,192 (attention.h:
// FlashAttention 2 on a B200 and GB200). Convolutions have kernels of 10.x there, for which older blocks
// stand in with Hopper's share (MLPerf's RetinaNet on B200s).
double share_of_older(const ProfileBlock& block, std::size_t family, const GpuSpec& gpu) {
  constexpr double kBlackwell = 10, kHopperOfBlackwell = 4'096.0 / 8'192;
  const double share = instruction_share(gpu, block.capability);
  const bool by_warps = share < 1 && family == index_of_family<RecurrentFamily>();
  return by_warps && gpu.compute_capability >= kBlackwell ? kHopperOfBlackwell * share : share;
}

// Sets the sustained shares of the GPU's clock and bandwidth: the block's where it was measured on the GPU,
// else from the data sheet and, where it is known, the board that was measured.
void set_sustained(FamilyModel& model, std::size_t family, const GpuSpec& gpu, MathType math,
                   const GpuSpec* measured) {
  const ProfileBlock& block = *model.block;
  const Prior expected = expected_clock(gpu, math);
  model.hardware = hardware_of(gpu, math);
  const double reference = block.clock_of_expected ? expected.mean : 1;
  model.sustained = {.clock = block.clock * reference, .bandwidth = block.bandwidth};
  model.clock_sd = block.clock_sd;
  // In blocks of older GPUs instruction_share lowers the whole clock instead, below.
  if (math == MathType::tf32 && (block.own || instruction_share(gpu, block.capability) == 1))
    model.hardware.across_k = tf32_across_k(gpu);
  if (model.hardware.tensor_cores) model.hardware.tile_loss = tile_loss(gpu, block.capability);
  if (block.clock_of_expected) model.hardware.power = limit_of_unmeasured(gpu, math);
  if (model.measured_on_this_gpu) {
    if (model.hardware.tensor_cores) set_power(model, gpu, math);
    return;
  }
  if (block.own) {  // the profile is another GPU's, whose clock is not this one's
    const Prior clock = clock_by_other_board(block, measured, gpu, math);
    model.sustained.clock = clock.mean;
    model.clock_sd = clock.sd;
    model.hardware.power = limit_of_unmeasured(gpu, math);
  }
  const bool may_be_older = model.hardware.tensor_cores && !block.own && !knows_instructions(family);
  if (may_be_older) model.sustained.clock *= share_of_older(block, family, gpu);
}

// The table of grid work of a family that has grids; null for other families.
std::shared_ptr<const GridWorkTable> grid_work_of(const FamilyModel& model, std::size_t family) {
  std::shared_ptr<const GridWorkTable> table;
  for_each_family([&]<class Family>(FamilyTag<Family>) {
    if (family != index_of_family<Family>()) return false;
    if constexpr (HasGrids<Family>) {
      const std::span<const double> p = model.block->parameters;
      table = std::make_shared<const GridWorkTable>(Family::grid_work(model.hardware, p));
    }
    return true;
  });
  return table;
}

void set_rates(FamilyModel& model, std::size_t family, const GpuSpec& gpu, MathType math,
               const GpuSpec* measured) {
  const Hardware before = model.hardware;
  set_sustained(model, family, gpu, math, measured);
  const Hardware& now = model.hardware;
  const bool same_grids = now.sm_count == before.sm_count && now.rate_share == before.rate_share &&
                          now.tile_loss == before.tile_loss && now.power == before.power;
  if (model.grid_work == nullptr || !same_grids) model.grid_work = grid_work_of(model, family);
  constexpr double kNoRow = std::numeric_limits<double>::infinity();
  model.sd_without_rows =
      sd_of({.mean = 0, .sd = model.residuals->sd_without_rows(), .distance = kNoRow}, model);
}

// Blocks of the family in the order of their distance, the newest of equally distant ones first.
std::vector<const ProfileBlock*> nearest_blocks(const Profile& profile, std::size_t family,
                                                const GpuSpec& gpu, MathType math,
                                                const LibraryVersions& libraries) {
  struct Candidate {
    const ProfileBlock* block;
    double distance;
    int version;
  };
  std::vector<Candidate> candidates;
  for (const ProfileBlock& block : profile.families[family]) {
    candidates.push_back(
        {&block, distance_of(block, family, gpu, math, libraries), generation_of(block.generation).version});
  }
  std::ranges::stable_sort(candidates, [](const Candidate& a, const Candidate& b) {
    return a.distance != b.distance ? a.distance < b.distance : a.version > b.version;
  });
  std::vector<const ProfileBlock*> blocks;
  for (const Candidate& candidate : candidates) blocks.push_back(candidate.block);
  return blocks;
}

FamilyModel model_of(const ProfileBlock& block, const Profile& profile, bool of_gpu, MathType math) {
  FamilyModel model;
  model.block = &block;
  model.precision_matches = alike(block.math, math);
  model.measured_on_this_gpu = block.own && of_gpu;
  model.measured_watts = profile.board_power;
  return model;
}

// True if `other` may predict calls whose pass `block` never timed: convolutions of one library in one
// arithmetic.
bool stands_in(const ProfileBlock& other, const ProfileBlock& block, std::size_t family) {
  return family == index_of_family<ConvFamily>() && alike(other.math, block.math) &&
         generation_of(other.generation).library == generation_of(block.generation).library;
}

FamilyModel with_rates_of(const GpuSpec& gpu, FamilyModel model, std::size_t family, MathType math,
                          const GpuSpec* measured) {
  set_rates(model, family, gpu, math, measured);
  if (model.next != nullptr)
    model.next = std::make_shared<const FamilyModel>(with_rates_of(gpu, *model.next, family, math, measured));
  return model;
}

// Further standard deviation of ln(time) where no call of the group was measured (batch norm, pooling,
// updates, a pass): an estimate; published spot checks of such kernels are off by 2 to 44 %, a few by more.
constexpr double kNoSuchCall = 0.3;
constexpr double kOtherPrecision = 0.2;  // further deviation where the block is of another precision

}  // namespace

const FamilyModel& model_that_timed(const ConvCall& call, const FamilyModel& nearest) {
  if (nearest.next == nullptr) return nearest;
  const std::uint64_t group = ConvFamily::group(call);
  for (const FamilyModel* model = &nearest; model != nullptr; model = model->next.get()) {
    if (model->residuals->has_any(group, ConvFamily::kPassAndGroups)) return *model;
  }
  return nearest;
}

double sd_of(const ResidualEstimate& found, const FamilyModel& model) {
  double sd = found.sd * model.block->interval / kEightyPercent;
  if (!model.measured_on_this_gpu) sd = smooth_max(sd, model.clock_sd);
  if (!model.block->measured.empty() && !std::isfinite(found.distance)) sd = smooth_max(sd, kNoSuchCall);
  return model.precision_matches ? sd : smooth_max(sd, kOtherPrecision);
}

Calibration calibration_of(const Profile& profile, const GpuSpec& gpu, const LibraryVersions& libraries,
                           const ConvLimits& conv_limits, const GpuSpec* measured) {
  Calibration calibration;
  calibration.profile = &profile;
  calibration.gpu = &gpu;
  calibration.measured = measured;
  calibration.conv_limits.fill(conv_limits);
  const bool of_gpu = profile.gpu.empty() || profile.gpu == gpu.name;
  std::map<const ProfileBlock*, std::shared_ptr<const ResidualIndex>> lookups;
  for (std::size_t family = 0; family < kFamilyCount; ++family) {
    for (std::size_t m = 0; m < kMathTypeCount; ++m) {
      const auto math = static_cast<MathType>(m);
      if (!computes(gpu, math)) continue;
      if (!has_tensor_cores(gpu, math)) calibration.conv_limits[m].pads_channels = PadsChannels::never;
      const bool half = math == MathType::fp16 || math == MathType::bf16;
      calibration.conv_limits[m].wide_transforms = half && gpu.computes_in[m] == MathType::fp32;
      const auto blocks = nearest_blocks(profile, family, gpu, math, libraries);
      if (blocks.empty()) continue;
      std::shared_ptr<const FamilyModel> next;
      for (auto it = blocks.rbegin(); it != blocks.rend(); ++it) {
        const ProfileBlock* const block = *it;
        if (!stands_in(*block, *blocks.front(), family) && block != blocks.front()) continue;
        FamilyModel model = model_of(*block, profile, of_gpu, math);
        auto& lookup = lookups[block];
        if (!lookup) lookup = std::make_shared<const ResidualIndex>(block->residuals, block->kriging);
        model.residuals = lookup;
        set_rates(model, family, gpu, math, measured);
        model.next = next;
        next = std::make_shared<const FamilyModel>(model);
      }
      calibration.models[family][m] = *next;
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
      FamilyModel& model = calibration.models[family][m];
      if (model.block != nullptr)
        model = with_rates_of(gpu, model, family, static_cast<MathType>(m), calibration.measured);
    }
  }
  return calibration;
}

}  // namespace tbdsim
