// The choice of a profile's block for a kernel.
#include <cmath>

#include <gmock/gmock.h>

#include "costmodel/hardware.h"
#include "hwspecs/base/catalog.h"
#include "tests/costmodel/recurrent_block.h"

namespace tbdsim {
namespace {

using test::recurrent_block;
using test::recurrent_kernel;
using test::two_seconds;
using test::with_blocks;
using test::with_residual;

KernelCost cost(const Profile& profile, MathType math = MathType::fp32) {
  const GpuSpec gpu = test::small_gpu();
  return estimate(recurrent_kernel(math), 1, calibration_of(profile, gpu));
}

// The generation of the block taken; "" for none.
template <class Family = RecurrentFamily>
std::string taken(const std::vector<ProfileBlock>& blocks, const LibraryVersions& libraries,
                  MathType math = MathType::fp32, double capability = 7.0) {
  GpuSpec gpu = test::small_gpu();
  gpu.compute_capability = capability;
  Profile profile;
  profile.families[index_of_family<Family>()] = blocks;
  const Calibration calibration = calibration_of(profile, gpu, libraries);
  const ProfileBlock* block = calibration.models[index_of_family<Family>()][index_of(math)].block;
  return block == nullptr ? "" : block->generation + (block->own ? "" : ", others");
}

constexpr MathType kHalf = MathType::fp16;
constexpr MathType kSingle = MathType::fp32;

TEST(CalibrationOf, PrecisionBeforeVersionAndGpu) {
  const std::vector<ProfileBlock> blocks = {recurrent_block("cudnn6", kHalf),
                                            recurrent_block("cudnn4", kSingle, false)};
  EXPECT_EQ(taken(blocks, {{"cudnn", 6}}, kSingle), "cudnn4, others");
  EXPECT_EQ(taken(blocks, {{"cudnn", 4}}, kHalf), "cudnn6");
}

// A measured clock of 0.8 at 700 W: by the power that follows the clock at others, at most the boost clock,
// which is 1.1 of the clock that the peak is quoted at.
TEST(CalibrationOf, MeasuredClockUnderAnotherLimitOfPower) {
  GpuSpec gpu = test::small_gpu();
  gpu.compute_capability = 9.0;
  gpu.boost_clock = Hertz(1.1e9);
  gpu.math[index_of(kHalf)]->clock = Hertz(1e9);
  Profile profile = with_blocks({recurrent_block("cudnn9", kHalf)});
  ProfileBlock& block = profile.families[index_of_family<RecurrentFamily>()][0];
  block.own = true;
  block.clock = 0.8;
  const auto clock = [&](double watts) {
    gpu.tdp = Watts(watts);
    return calibration_of(profile, gpu)
        .models[index_of_family<RecurrentFamily>()][index_of(kHalf)]
        .sustained.clock;
  };
  EXPECT_EQ(clock(500), 0.8) << "measured with a power that nobody knows";
  profile.board_power = 700;
  EXPECT_EQ(clock(700), 0.8);
  EXPECT_NEAR(clock(500), 0.8 * std::cbrt((5.0 / 7 - 0.15) / 0.85), 1e-12);
  EXPECT_NEAR(clock(1'000), 0.8 * std::cbrt((10.0 / 7 - 0.15) / 0.85), 1e-12);
  EXPECT_EQ(clock(5'000), 1.1);
}

// 0.8 of the clock where 0.92 are expected, as of a GPU that is no GeForce: a GeForce board of the chip, of
// which 1 is expected, has 0.8 / 0.92 of it.
TEST(CalibrationOf, AnotherBoardOfTheChipHasTheMeasuredShareOfItsClock) {
  GpuSpec measured = test::small_gpu();
  measured.tdp = Watts(250);
  GpuSpec board = measured;
  board.name = "board";
  board.product_line = ProductLine::geforce;
  Profile profile = with_blocks({recurrent_block("cudnn9", kSingle)});
  profile.gpu = measured.name;
  ProfileBlock& block = profile.families[index_of_family<RecurrentFamily>()][0];
  block.own = true;
  block.clock = 0.8;
  const auto model = [&](const GpuSpec* of) {
    return calibration_of(profile, board, {}, {}, of)
        .models[index_of_family<RecurrentFamily>()][index_of(kSingle)];
  };
  EXPECT_NEAR(model(&measured).sustained.clock, 0.8 / 0.92, 1e-12);
  EXPECT_EQ(model(&measured).clock_sd, kClockBetweenBoards);
  EXPECT_EQ(model(nullptr).sustained.clock, 1) << "of a board that is not known";
}

// Tensor cores that take both formats of two bytes multiply them alike.
TEST(CalibrationOf, EitherFormatOfTwoBytes) {
  const std::vector<ProfileBlock> blocks = {recurrent_block("cudnn5", kHalf),
                                            recurrent_block("cudnn8", MathType::bf16)};
  EXPECT_EQ(taken(blocks, {{"cudnn", 8}}, kHalf), "cudnn8");
  EXPECT_EQ(taken(blocks, {{"cudnn", 5}}, kHalf), "cudnn5");
  const Profile profile =
      with_blocks({with_residual(recurrent_block("cudnn8", MathType::bf16), two_seconds(), 0)});
  EXPECT_EQ(cost(profile, kHalf).provenance, Provenance::measured);
}

// A GPU without tensor cores computes fp16 by the lanes of fp32: by the kernels of fp32, whatever the
// version.
TEST(CalibrationOf, HalfPrecisionWithoutTensorCores) {
  const std::vector<ProfileBlock> blocks = {recurrent_block("cudnn5", kSingle, false),
                                            recurrent_block("cudnn7", kHalf, false)};
  EXPECT_EQ(taken(blocks, {{"cudnn", 7}}, kHalf, 6.0), "cudnn5, others");
  EXPECT_EQ(taken(blocks, {{"cudnn", 7}}, kHalf, 7.0), "cudnn7, others");
}

// Products of recurrent layers that were timed on Hopper with cuBLAS 13 are of no earlier cuBLAS, not even
// where the other kernels are of another GPU and precision; those in fp32 have no other instructions.
TEST(CalibrationOf, RecurrentProductsOfNewerInstructions) {
  ProfileBlock newer = recurrent_block("cudnn9", kHalf);
  newer.capability = 9.0;
  ProfileBlock older = recurrent_block("cudnn7", MathType::bf16, false);
  older.capability = 7.0;
  const auto with_cublas = [&](int version) {
    return taken({newer, older}, {{"cublas", version}, {"cudnn", 9}}, kHalf, 9.0);
  };
  EXPECT_EQ(with_cublas(13), "cudnn9");
  EXPECT_EQ(with_cublas(12), "cudnn7, others");
  EXPECT_EQ(taken({newer, older}, {}, kHalf, 9.0), "cudnn9") << "the newest libraries";
  newer.math = older.math = kSingle;
  EXPECT_EQ(taken({newer, older}, {{"cublas", 12}, {"cudnn", 9}}, kSingle, 9.0), "cudnn9");
}

// Kernels for a V100 reach 0.62 of Hopper's 4,096 operations a clock, recurrent layers as many of the 8,192
// of 10.x.
TEST(CalibrationOf, RecurrentProductsWarpByWarp) {
  ProfileBlock older = recurrent_block("cudnn7", kHalf, false);
  older.capability = 7.0;
  const auto clock = [&](double capability) {
    GpuSpec gpu = test::small_gpu();
    gpu.compute_capability = capability;
    const Calibration calibration = calibration_of(with_blocks({older}), gpu);
    return calibration.models[index_of_family<RecurrentFamily>()][index_of(kHalf)].sustained.clock;
  };
  EXPECT_NEAR(clock(9.0) / clock(8.0), 0.62, 1e-12);
  EXPECT_NEAR(clock(10.0) / clock(8.0), 0.31, 1e-12);
  EXPECT_NEAR(clock(12.0) / clock(8.0), 1, 1e-12);
}

TEST(CalibrationOf, TheNearestVersion) {
  const std::vector<ProfileBlock> blocks = {recurrent_block("cudnn5"), recurrent_block("cudnn7"),
                                            recurrent_block("cudnn12")};
  EXPECT_EQ(taken(blocks, {{"cudnn", 5}}), "cudnn5");
  EXPECT_EQ(taken(blocks, {{"cudnn", 8}}), "cudnn7");
  EXPECT_EQ(taken(blocks, {{"cudnn", 11}}), "cudnn12");
  EXPECT_EQ(taken(blocks, {{"cudnn", 6}}), "cudnn7") << "of two as near the newer";
}

// Another GPU counts as one and a half versions.
TEST(CalibrationOf, TheOwnGpu) {
  const std::vector<ProfileBlock> blocks = {recurrent_block("cudnn5"),
                                            recurrent_block("cudnn7", kSingle, false)};
  EXPECT_EQ(taken(blocks, {{"cudnn", 6}}), "cudnn5");
  EXPECT_EQ(taken(blocks, {{"cudnn", 7}}), "cudnn7, others") << "two versions are more";
  EXPECT_EQ(taken({recurrent_block("cudnn6"), recurrent_block("cudnn6", kSingle, false)}, {}), "cudnn6");
}

// cuDNN 7 on a Pascal card runs the kernels of cuDNN 6; calls of cuDNN 7 on other GPUs ran other kernels.
TEST(CalibrationOf, KernelsOfCardsBeforeVolta) {
  const std::vector<ProfileBlock> blocks = {recurrent_block("cudnn5"),
                                            recurrent_block("cudnn7", kSingle, false)};
  EXPECT_EQ(taken(blocks, {{"cudnn", 7}}, kSingle, 6.1), "cudnn5");
  EXPECT_EQ(taken({recurrent_block("cudnn6", kSingle, false), recurrent_block("cudnn7", kSingle, false)},
                  {{"cudnn", 8}}, kSingle, 6.1),
            "cudnn6, others");
}

// The own cuBLAS 8 runs what cuBLAS 11 does on a Pascal card; a Maxwell's cuBLAS 7 is a version and another
// GPU away. A framework that says nothing means the newest kernels of such cards, which another Pascal's
// cuDNN 8 ran, too.
TEST(CalibrationOf, OwnKernelsOfCardsBeforeVoltaDoNotAge) {
  ProfileBlock maxwell = recurrent_block("cublas7", kSingle, false);
  maxwell.capability = 5.2;
  EXPECT_EQ(taken({maxwell, recurrent_block("cublas8")}, {{"cublas", 11}}, kSingle, 6.1), "cublas8");
  ProfileBlock volta = recurrent_block("cudnn7", kSingle, false);
  volta.capability = 7;
  EXPECT_EQ(taken({recurrent_block("cudnn6", kSingle, false), volta}, {}, kSingle, 6.1), "cudnn6, others");
  ProfileBlock pascal = recurrent_block("cudnn8", kSingle, false);
  pascal.capability = 6.1;
  EXPECT_EQ(taken({pascal, volta}, {}, kSingle, 6.1), "cudnn8, others");
}

ProfileBlock block_of_pass(const std::string& generation, Phase phase, const ConvCall& call) {
  ProfileBlock block = recurrent_block(generation, kSingle, false);
  block.parameters.clear();
  for (const Parameter& parameter : ConvFamily::parameters) block.parameters.push_back(parameter.start);
  ConvCall timed = call;
  timed.phase = phase;
  block.residuals = ResidualTable({{ConvFamily::features(timed), 0.1, 0}});
  return block;
}

// cuDNN 8 timed forward passes alone: gradients are predicted by the next block, groups, which neither
// timed, by the nearest.
TEST(CalibrationOf, PassesThatTheNearestBlockNeverTimed) {
  ConvCall call;
  call.images = 8;
  call.channels = call.filters = 64;
  call.kernel_height = call.kernel_width = 3;
  call.out_height = call.out_width = 14;
  GpuSpec gpu = test::small_gpu();
  gpu.compute_capability = 7.0;
  Profile profile;
  auto& blocks = profile.families[index_of_family<ConvFamily>()];
  blocks = {block_of_pass("cudnn7", Phase::backward_data, call),
            block_of_pass("cudnn8", Phase::forward, call)};
  const Calibration calibration = calibration_of(profile, gpu, {{"cudnn", 8}});
  const FamilyModel& nearest = calibration.models[index_of_family<ConvFamily>()][index_of(kSingle)];
  const auto taken_by = [&](Phase phase, double groups, double size) {
    ConvCall other = call;
    other.phase = phase;
    other.groups = groups;
    other.kernel_height = other.kernel_width = size;
    return model_that_timed(other, nearest).block->generation;
  };
  EXPECT_EQ(taken_by(Phase::forward, 1, 3), "cudnn8");
  EXPECT_EQ(taken_by(Phase::forward, 1, 5), "cudnn8") << "another filter of the same pass";
  EXPECT_EQ(taken_by(Phase::backward_data, 1, 3), "cudnn7");
  EXPECT_EQ(taken_by(Phase::backward_data, 4, 3), "cudnn8");
}

// Times of cuDNN 6 on another GPU predict its convolutions better than its own cuDNN 5 without the non-fused
// Winograd; of recurrent layers the own block does.
TEST(CalibrationOf, ConvolutionsBeforeTheNonfusedWinograd) {
  const std::vector<ProfileBlock> blocks = {recurrent_block("cudnn5"),
                                            recurrent_block("cudnn6", kSingle, false)};
  EXPECT_EQ(taken<ConvFamily>(blocks, {{"cudnn", 6}}, kSingle, 5.2), "cudnn6, others");
  EXPECT_EQ(taken<ConvFamily>(blocks, {{"cudnn", 5}}, kSingle, 5.2), "cudnn5");
  EXPECT_EQ(taken(blocks, {{"cudnn", 6}}, kSingle, 5.2), "cudnn5");
}

// A block of a library that the framework does not call is not near for having no version to compare.
TEST(CalibrationOf, ALibraryThatIsCalled) {
  const std::vector<ProfileBlock> blocks = {recurrent_block("cudnn9"), recurrent_block("trtllm1")};
  EXPECT_EQ(taken(blocks, {{"cudnn", 6}}), "cudnn9");
  EXPECT_EQ(taken(blocks, {}), "cudnn9") << "of a framework that says nothing the newest";
}

// Attention is by the library that is named where anyone timed it; before Hopper not by kernels that only
// Hopper and later GPUs have, unless no others were timed.
TEST(CalibrationOf, AttentionOfTheLibraryThatIsNamed) {
  const std::vector<ProfileBlock> flash = {recurrent_block("flash2", kHalf, false),
                                           recurrent_block("triton3", kHalf)};
  EXPECT_EQ(taken<FlashAttention2Family>(flash, {}, kHalf, 9.0), "flash2, others");
  std::vector<ProfileBlock> cudnn = {recurrent_block("trtllm1", kHalf),
                                     recurrent_block("cudnn9", kHalf, false)};
  cudnn[1].capability = 10;
  EXPECT_EQ(taken<CudnnAttentionFamily>(cudnn, {}, kHalf, 9.0), "cudnn9, others");
  EXPECT_EQ(taken<CudnnAttentionFamily>(cudnn, {}, kHalf, 8.0), "trtllm1");
  EXPECT_EQ(taken<CudnnAttentionFamily>({cudnn[1]}, {}, kHalf, 8.0), "cudnn9, others");
}

TEST(CalibrationOf, NoBlockForArithmeticThatTheCardLacks) {
  EXPECT_EQ(taken({recurrent_block()}, {}, MathType::bf16), "");
  EXPECT_EQ(taken({}, {}), "");
}

// Channels are padded for tensor cores, which multiply half precision from 7.0 on and TF32 from 8.0 on.
TEST(CalibrationOf, PadsChannelsForTensorCoresAlone) {
  const Profile profile;
  GpuSpec gpu = test::small_gpu();
  const auto pads = [&](MathType math) {
    const Calibration calibration = calibration_of(profile, gpu, {}, {.pads_channels = PadsChannels::always});
    return calibration.conv_limits[index_of(math)].pads_channels;
  };
  gpu.compute_capability = 7.0;
  EXPECT_EQ(pads(kHalf), PadsChannels::always);
  EXPECT_EQ(pads(kSingle), PadsChannels::never);
  gpu.compute_capability = 6.0;
  EXPECT_EQ(pads(kHalf), PadsChannels::never);
}

// A card without lanes for half precision computes it in fp32, and transforms it in fp32.
TEST(CalibrationOf, WideTransformsWhereHalfIsComputedInFp32) {
  const Profile profile;
  GpuSpec gpu = test::small_gpu();
  const auto wide = [&](MathType math) {
    return calibration_of(profile, gpu).conv_limits[index_of(math)].wide_transforms;
  };
  gpu.computes_in[index_of(kHalf)] = std::nullopt;
  EXPECT_FALSE(wide(kHalf));
  gpu.computes_in[index_of(kHalf)] = kSingle;
  EXPECT_TRUE(wide(kHalf));
  EXPECT_FALSE(wide(kSingle));
}

}  // namespace
}  // namespace tbdsim
